/**
 * The input chart governs the life of one unit of work: from its admission, through the lanes and
 * the turn that takes it, to exactly one end. It is the place where "exactly once" is decided: an
 * input leaves `staged` either by the receipt of its turn (applied, then consumed) or back to its
 * lane, never both, and an end is an end. Instants are ISO 8601 and arrive in events.
 */
import { assign, setup } from "xstate";

/** Why an input ended without being consumed. */
export type AbandonReason =
  | {
      readonly code: "retired" | "reset" | "stopped" | "destroyed" | "cancelled" | "neverExecuted";
    }
  | { readonly code: "maxAttemptsExhausted"; readonly attempts: number };

/** How an ended input ended. */
export type InputOutcome =
  | { readonly type: "consumed" }
  | { readonly type: "superseded"; readonly by: string }
  | { readonly type: "coalesced"; readonly into: string }
  | { readonly type: "abandoned"; readonly reason: AbandonReason };

/** One move in the life of an input. */
export interface InputMove {
  readonly at: string;
  readonly from: string;
  readonly to: string;
  readonly event: string;
}

export interface InputContext {
  readonly inputId: string;
  readonly attempts: number;
  readonly attemptsMax: number;
  /** How often a restart took the input back from a turn that a crash had cut off. */
  readonly recoveries: number;
  readonly lastTurnId: string | null;
  readonly lastBoundarySequence: number | null;
  readonly outcome: InputOutcome | null;
  /** The moves so far; of very long lives the oldest are dropped after `MOVES_KEPT`. */
  readonly history: readonly InputMove[];
}

export interface InputInput {
  readonly inputId: string;
  readonly attemptsMax: number;
}

export type InputEvent =
  | { readonly type: "queue"; readonly at: string }
  | { readonly type: "consumeOnAccept"; readonly at: string }
  | { readonly type: "stage"; readonly at: string; readonly turnId: string }
  | { readonly type: "rollback"; readonly at: string }
  | { readonly type: "requeue"; readonly at: string }
  | { readonly type: "apply"; readonly at: string; readonly turnId: string }
  | {
      readonly type: "awaitConsumption";
      readonly at: string;
      readonly sequence: number;
    }
  | { readonly type: "consume"; readonly at: string }
  | { readonly type: "supersede"; readonly at: string; readonly by: string }
  | { readonly type: "coalesce"; readonly at: string; readonly into: string }
  | {
      readonly type: "abandon";
      readonly at: string;
      readonly reason: AbandonReason;
    };

/** Moves kept in the history of one input; an input that outlives that many restarts is rare. */
const MOVES_KEPT = 200;

type Move = { readonly from: string; readonly to: string };

export const inputMachine = setup({
  types: {
    context: {} as InputContext,
    events: {} as InputEvent,
    input: {} as InputInput,
  },
  guards: {
    // An attempt that a crash cut off is not a failure of the input.
    hasAttemptsLeft: ({ context }) => context.attempts - context.recoveries < context.attemptsMax,
    isOurTurn: ({ context, event }) =>
      event.type === "apply" && event.turnId === context.lastTurnId,
  },
  actions: {
    record: assign(({ context, event }, move: Move) => ({
      history: [
        ...(context.history.length < MOVES_KEPT ? context.history : context.history.slice(1)),
        { at: event.at, from: move.from, to: move.to, event: event.type },
      ],
    })),
    takeTurn: assign(({ context, event }) =>
      event.type === "stage"
        ? {
            lastTurnId: event.turnId,
            // A boundary of an earlier turn says nothing about this one.
            lastBoundarySequence: null,
            attempts: context.attempts + 1,
          }
        : {},
    ),
    countRecovery: assign(({ context }) => ({
      recoveries: context.recoveries + 1,
    })),
    noteBoundary: assign(({ event }) =>
      event.type === "awaitConsumption" ? { lastBoundarySequence: event.sequence } : {},
    ),
    endConsumed: assign({ outcome: { type: "consumed" } as const }),
    endReplaced: assign(({ event }) => {
      if (event.type === "supersede")
        return { outcome: { type: "superseded", by: event.by } as const };
      if (event.type === "coalesce")
        return { outcome: { type: "coalesced", into: event.into } as const };
      return {};
    }),
    endAbandoned: assign(({ event }) =>
      event.type === "abandon"
        ? { outcome: { type: "abandoned", reason: event.reason } as const }
        : {},
    ),
    endExhausted: assign(({ context }) => ({
      outcome: {
        type: "abandoned",
        reason: { code: "maxAttemptsExhausted", attempts: context.attempts },
      } as const,
    })),
    /** Effect: the input is on its lane and may be taken. */
    enterLane: () => {},
    /** Effect: the input is off every lane. */
    leaveLane: () => {},
    /** Effect: whoever waits for the input hears how it ended. */
    tellEnd: () => {},
  },
}).createMachine({
  id: "input",
  version: "1",
  initial: "accepted",
  context: ({ input }) => ({
    inputId: input.inputId,
    attempts: 0,
    attemptsMax: input.attemptsMax,
    recoveries: 0,
    lastTurnId: null,
    lastBoundarySequence: null,
    outcome: null,
    history: [],
  }),
  states: {
    accepted: {
      description: "Admitted and durable, not yet on a lane.",
      on: {
        queue: {
          target: "queued",
          actions: [{ type: "record", params: { from: "accepted", to: "queued" } }, "enterLane"],
          description: "The policy gives it a lane.",
        },
        consumeOnAccept: {
          target: "consumed",
          actions: [
            { type: "record", params: { from: "accepted", to: "consumed" } },
            "endConsumed",
            "tellEnd",
          ],
          description: "The policy says that being accepted is all there is to do.",
        },
        abandon: {
          target: "abandoned",
          actions: [
            { type: "record", params: { from: "accepted", to: "abandoned" } },
            "endAbandoned",
            "tellEnd",
          ],
          description: "The session gives it up.",
        },
      },
    },
    queued: {
      description: "Waiting on its lane for a turn.",
      on: {
        stage: {
          target: "staged",
          actions: [
            { type: "record", params: { from: "queued", to: "staged" } },
            "takeTurn",
            "leaveLane",
          ],
          description: "A turn takes it; this counts as an attempt.",
        },
        supersede: {
          target: "superseded",
          actions: [
            { type: "record", params: { from: "queued", to: "superseded" } },
            "endReplaced",
            "leaveLane",
            "tellEnd",
          ],
          description: "A newer input of the same scope takes its place.",
        },
        coalesce: {
          target: "coalesced",
          actions: [
            { type: "record", params: { from: "queued", to: "coalesced" } },
            "endReplaced",
            "leaveLane",
            "tellEnd",
          ],
          description: "Another input carries its content on.",
        },
        abandon: {
          target: "abandoned",
          actions: [
            { type: "record", params: { from: "queued", to: "abandoned" } },
            "endAbandoned",
            "leaveLane",
            "tellEnd",
          ],
          description: "The session gives it up.",
        },
      },
    },
    staged: {
      description: "In the hands of exactly one turn, durably.",
      on: {
        rollback: [
          {
            guard: "hasAttemptsLeft",
            target: "queued",
            actions: [{ type: "record", params: { from: "staged", to: "queued" } }, "enterLane"],
            description: "The turn failed; another one may try.",
          },
          {
            target: "abandoned",
            actions: [
              { type: "record", params: { from: "staged", to: "abandoned" } },
              "endExhausted",
              "tellEnd",
            ],
            description: "The turn failed and no attempt is left.",
          },
        ],
        requeue: {
          target: "queued",
          actions: [
            { type: "record", params: { from: "staged", to: "queued" } },
            "countRecovery",
            "enterLane",
          ],
          description: "The process went away under the turn; the input is not to blame.",
        },
        apply: {
          guard: "isOurTurn",
          target: "applied",
          actions: [{ type: "record", params: { from: "staged", to: "applied" } }],
          description: "The turn that holds it has done its work.",
        },
        abandon: {
          target: "abandoned",
          actions: [
            { type: "record", params: { from: "staged", to: "abandoned" } },
            "endAbandoned",
            "tellEnd",
          ],
          description: "The session or a cancel gives it up.",
        },
      },
    },
    applied: {
      description: "Done by its turn, the boundary not yet named.",
      on: {
        awaitConsumption: {
          target: "appliedPendingConsumption",
          actions: [
            {
              type: "record",
              params: { from: "applied", to: "appliedPendingConsumption" },
            },
            "noteBoundary",
          ],
          description: "The boundary receipt has its number.",
        },
        requeue: {
          target: "queued",
          actions: [
            { type: "record", params: { from: "applied", to: "queued" } },
            "countRecovery",
            "enterLane",
          ],
          description: "Recovery found no receipt.",
        },
        abandon: {
          target: "abandoned",
          actions: [
            { type: "record", params: { from: "applied", to: "abandoned" } },
            "endAbandoned",
            "tellEnd",
          ],
          description: "The session gives it up.",
        },
      },
    },
    appliedPendingConsumption: {
      description: "Done, and its receipt named; the end of the turn is outstanding.",
      on: {
        consume: {
          target: "consumed",
          actions: [
            {
              type: "record",
              params: { from: "appliedPendingConsumption", to: "consumed" },
            },
            "endConsumed",
            "tellEnd",
          ],
          description: "The receipt is in the same commit, or recovery found it.",
        },
        requeue: {
          target: "queued",
          actions: [
            {
              type: "record",
              params: { from: "appliedPendingConsumption", to: "queued" },
            },
            "countRecovery",
            "enterLane",
          ],
          description: "Recovery found no receipt.",
        },
        abandon: {
          target: "abandoned",
          actions: [
            {
              type: "record",
              params: { from: "appliedPendingConsumption", to: "abandoned" },
            },
            "endAbandoned",
            "tellEnd",
          ],
          description: "The session gives it up.",
        },
      },
    },
    consumed: {
      type: "final",
      description: "Done exactly once, with a receipt.",
    },
    superseded: {
      type: "final",
      description: "A newer input took its place before it began.",
    },
    coalesced: {
      type: "final",
      description: "Merged into another input before it began.",
    },
    abandoned: {
      type: "final",
      description: "Given up, for the reason in its outcome.",
    },
  },
});
