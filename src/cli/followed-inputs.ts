/**
 * The inputs of this run until each has ended: prints how, counts, and says when there is room and
 * when all is done. An outcome that is not the last one, such as a failed attempt, is followed by
 * the next.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { NotFoundError } from "../errors.js";
import type { Completion } from "../sessions/completion.js";
import type { Session } from "../sessions/handle.js";
import type { InputView } from "../sessions/input.js";
import type { Output } from "./output.js";
import { oneLine, plainId } from "./plain-text.js";

/** What is known of a followed input besides its outcome. */
export interface Followed {
  readonly inputId: string;
  readonly line?: number;
  readonly idempotencyKey?: string;
  readonly resumed?: true;
}

const ended = new Set(["consumed", "superseded", "coalesced", "abandoned"]);
const RESULT_MAX = 160;
/** Pause before a session that is being built again is asked again. */
const REBUILD_PAUSE_MS = 50;

export class FollowedInputs {
  readonly counts = { completed: 0, failed: 0, resumed: 0 };
  /** Aborted, with the reason, when the session cannot go on. */
  readonly failed: AbortSignal;
  /** Whether inputs can end at all: somebody works on them. */
  readonly isWorking: boolean;
  readonly #session: Session;
  readonly #output: Output;
  readonly #failing = new AbortController();
  readonly #open = new Set<string>();
  #isStopped = false;
  #wakers: (() => void)[] = [];

  constructor(session: Session, output: Output, options: { readonly isWorking: boolean }) {
    this.#session = session;
    this.#output = output;
    this.isWorking = options.isWorking;
    this.failed = this.#failing.signal;
  }

  get waiting(): number {
    return this.#open.size;
  }

  follow(input: Followed, completion: Promise<Completion>): void {
    this.#open.add(input.inputId);
    this.#followToEnd(input, completion)
      .catch((error: unknown) => {
        if (!this.#isStopped) this.#failing.abort(error);
      })
      .finally(() => this.#wake());
  }

  /** Takes up an input that an earlier run left. */
  async resume({ inputId, phase, header: { idempotencyKey } }: InputView): Promise<void> {
    const key = idempotencyKey === undefined ? {} : { idempotencyKey };
    this.counts.resumed += 1;
    this.follow({ inputId, resumed: true, ...key }, this.#session.completion(inputId));
    await this.#output.print({ type: "resumed", inputId, ...key, state: phase }, undefined);
  }

  /** Resolves when an input has ended, or nothing is to be waited for any more. */
  async room(): Promise<void> {
    if (this.#isOver) return;
    await new Promise<void>((resolve) => this.#wakers.push(resolve));
  }

  /** Resolves when no input is open, or nothing is to be waited for any more. */
  async settled(): Promise<void> {
    while (this.#open.size > 0 && !this.#isOver) await this.room();
  }

  /** Nothing is waited for from here on. What is open stays open for the next run. */
  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }

  get #isOver(): boolean {
    return this.#isStopped || this.failed.aborted;
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }

  async #followToEnd(input: Followed, first: Promise<Completion>): Promise<void> {
    let completion = await first;
    while (!(await this.#isLast(input, completion))) {
      if (this.#isOver) return;
      if (completion.type === "abandoned") await this.#printRetry(input, completion.reason);
      else await sleep(REBUILD_PAUSE_MS);
      // Brings the session back where it left memory; fails where it cannot come back.
      await this.#session.actor();
      completion = await this.#session.completion(input.inputId);
    }
    this.#open.delete(input.inputId);
    await this.#printEnd(input, completion);
  }

  /** Outcomes that speak of an attempt or of the wait, and not of the input, are not the last. */
  async #isLast({ inputId }: Followed, completion: Completion): Promise<boolean> {
    if (completion.type === "abandoned") return !completion.willRetry;
    const isOfInput =
      completion.type !== "terminated" && completion.type !== "completedWithFinalizationFailure";
    if (isOfInput || this.#isOver) return isOfInput;
    const view = await this.#session.input(inputId);
    if (view === undefined) throw new NotFoundError("input", inputId);
    return ended.has(view.phase);
  }

  async #printRetry({ inputId, line }: Followed, reason: string): Promise<void> {
    await this.#output.print(
      { type: "retrying", inputId, ...(line === undefined ? {} : { line }), reason },
      `retrying   ${whereOf(line)}  ${oneLine(reason, RESULT_MAX)}`,
    );
  }

  async #printEnd(input: Followed, completion: Completion): Promise<void> {
    const isDone = !["abandoned", "cancelled", "terminated"].includes(completion.type);
    this.counts[isDone ? "completed" : "failed"] += 1;
    const { type, ...details } = completion;
    const name = plainId(input.idempotencyKey ?? input.inputId);
    await this.#output.print(
      { type: isDone ? "completed" : "failed", ...input, outcome: type, ...details },
      `${(isDone ? "completed" : "failed").padEnd(10)} ${whereOf(input.line)}  ${name}  ${textOf(completion)}`,
    );
  }
}

function whereOf(line: number | undefined): string {
  return line === undefined ? "resumed" : `line ${line}`;
}

function textOf(completion: Completion): string {
  switch (completion.type) {
    case "completed":
      return shown(completion.result);
    case "completedWithoutResult":
      return "(no result)";
    case "callbackPending":
      return `waits for ${oneLine(completion.tool, RESULT_MAX)} ${shown(completion.args)}`;
    case "completedWithFinalizationFailure":
      return oneLine(completion.error, RESULT_MAX);
    case "cancelled":
      return "cancelled";
    case "abandoned":
    case "terminated":
      return oneLine(completion.reason, RESULT_MAX);
  }
}

function shown(value: unknown): string {
  return oneLine(typeof value === "string" ? value : JSON.stringify(value), RESULT_MAX);
}
