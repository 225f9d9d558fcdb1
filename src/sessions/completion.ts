/**
 * What somebody who waits for an input hears. A waiter's outcome and the input's own fate are
 * separate facts: after a failed try the waiter hears of the failure while the input waits again.
 */
import type { AbandonReason, InputOutcome } from "../../machines/input.js";
import type { JsonValue } from "../store/port.js";

export type Completion =
  | { readonly type: "completed"; readonly result: JsonValue }
  | { readonly type: "completedWithoutResult" }
  | { readonly type: "callbackPending"; readonly tool: string; readonly args: JsonValue }
  | { readonly type: "cancelled" }
  /** `willRetry`: the input is queued again; ask `session.completion(inputId)` for its next outcome. */
  | { readonly type: "abandoned"; readonly reason: string; readonly willRetry: boolean }
  | {
      readonly type: "completedWithFinalizationFailure";
      readonly result: JsonValue;
      readonly error: string;
    }
  /** The wait ended for a reason outside the input, such as the end of the session. */
  | { readonly type: "terminated"; readonly reason: string };

/** A promise with its resolver. It never rejects, so nobody has to handle it. */
export class Waiter {
  readonly promise: Promise<Completion>;
  #resolve: (completion: Completion) => void = () => {};

  constructor() {
    this.promise = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Only the first outcome counts. */
  resolve(completion: Completion): void {
    this.#resolve(completion);
  }
}

/** What the end of an input means to its waiters where the turn has not said more. */
export function completionOfOutcome(outcome: InputOutcome): Completion {
  switch (outcome.type) {
    case "consumed":
      return { type: "completedWithoutResult" };
    case "superseded":
      return { type: "terminated", reason: `superseded by input ${outcome.by}` };
    case "coalesced":
      return { type: "terminated", reason: `coalesced into input ${outcome.into}` };
    case "abandoned":
      return completionOfAbandon(outcome.reason);
  }
}

function completionOfAbandon(reason: AbandonReason): Completion {
  switch (reason.code) {
    case "cancelled":
      return { type: "cancelled" };
    case "retired":
      return { type: "terminated", reason: "retired without a turn loop" };
    case "reset":
      return { type: "terminated", reason: "session reset" };
    case "stopped":
      return { type: "terminated", reason: "session stopped" };
    case "destroyed":
      return { type: "terminated", reason: "session destroyed" };
    case "neverExecuted":
      return { type: "abandoned", reason: "the turn never began", willRetry: false };
    case "maxAttemptsExhausted":
      return {
        type: "abandoned",
        reason: `failed in each of ${reason.attempts} attempts`,
        willRetry: false,
      };
  }
}
