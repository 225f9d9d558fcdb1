/**
 * The turn chart governs one executor call over the inputs that it holds. A turn is durable before
 * its executor is called, names each boundary that it commits, and ends once: by completion, by a
 * pending callback, by failure, by cancel, because it never began, or because the process went
 * away under it. Its inputs have charts of their own; the same commit moves both.
 */
import { assign, setup } from "xstate";

/** Where in a turn its inputs take effect. */
export type TurnBoundary = "turnStart" | "turnCheckpoint" | "immediate";

export interface TurnContext {
  readonly turnId: string;
  readonly sessionId: string;
  readonly inputIds: readonly string[];
  readonly boundary: TurnBoundary;
  /** Instant of the staging commit, ISO 8601. */
  readonly stagedAt: string;
  readonly begunAt: string | null;
  readonly endedAt: string | null;
  /** Boundary receipts minted so far; the next one has this number. */
  readonly boundaries: number;
  readonly reason: string | null;
}

export interface TurnInput {
  readonly turnId: string;
  readonly sessionId: string;
  readonly inputIds: readonly string[];
  readonly boundary: TurnBoundary;
  readonly stagedAt: string;
}

export type TurnEvent =
  | { readonly type: "begin"; readonly at: string }
  | {
      readonly type: "boundary.reached";
      readonly at: string;
      readonly sequence: number;
    }
  | {
      readonly type: "inputs.joined";
      readonly at: string;
      readonly inputIds: readonly string[];
    }
  | { readonly type: "complete"; readonly at: string }
  | {
      readonly type: "awaitCallback";
      readonly at: string;
      readonly tool: string;
    }
  | { readonly type: "fail"; readonly at: string; readonly reason: string }
  | { readonly type: "cancel"; readonly at: string }
  | { readonly type: "expire"; readonly at: string }
  | {
      readonly type: "interrupt";
      readonly at: string;
      readonly reason: string;
    };

export const turnMachine = setup({
  types: {
    context: {} as TurnContext,
    events: {} as TurnEvent,
    input: {} as TurnInput,
  },
  guards: {
    isNextBoundary: ({ context, event }) =>
      event.type === "boundary.reached" && event.sequence === context.boundaries,
    hasBoundary: ({ context }) => context.boundaries > 0,
  },
  actions: {
    noteBegin: assign(({ event }) => ({ begunAt: event.at })),
    countBoundary: assign(({ context }) => ({
      boundaries: context.boundaries + 1,
    })),
    takeInputs: assign(({ context, event }) =>
      event.type === "inputs.joined" ? { inputIds: [...context.inputIds, ...event.inputIds] } : {},
    ),
    noteEnd: assign(({ event }) => ({ endedAt: event.at })),
    noteReason: assign(({ event }) => {
      if (event.type === "fail" || event.type === "interrupt") return { reason: event.reason };
      if (event.type === "awaitCallback") return { reason: `callback ${event.tool}` };
      return {};
    }),
    /** Effect: the executor's signal is aborted. */
    abortExecutor: () => {},
  },
}).createMachine({
  id: "turn",
  version: "1",
  initial: "staged",
  context: ({ input }) => ({
    ...input,
    begunAt: null,
    endedAt: null,
    boundaries: 0,
    reason: null,
  }),
  states: {
    staged: {
      description: "Durable, with its inputs; the executor has not begun.",
      on: {
        begin: {
          target: "executing",
          actions: "noteBegin",
          description: "The executor was called. It is written with the turn's next commit.",
        },
        fail: {
          target: "failed",
          actions: ["noteReason", "noteEnd"],
          description: "The executor could not be called.",
        },
        cancel: {
          target: "cancelled",
          actions: ["noteEnd", "abortExecutor"],
          description: "Cancelled before the executor was called.",
        },
        expire: {
          target: "neverExecuted",
          actions: "noteEnd",
          description: "The bound for beginning has passed.",
        },
        interrupt: {
          target: "interrupted",
          actions: ["noteReason", "noteEnd", "abortExecutor"],
          description: "The process or the session ended under the turn.",
        },
      },
    },
    executing: {
      description: "The executor works, outside every lock.",
      on: {
        "boundary.reached": {
          guard: "isNextBoundary",
          actions: "countBoundary",
          description: "A receipt is minted; receipts of a turn are contiguous from 0.",
        },
        "inputs.joined": {
          actions: "takeInputs",
          description: "Inputs that steer the turn are staged under it, between two boundaries.",
        },
        complete: {
          guard: "hasBoundary",
          target: "completed",
          actions: "noteEnd",
          description: "All of its work is behind a boundary.",
        },
        awaitCallback: {
          guard: "hasBoundary",
          target: "callbackPending",
          actions: ["noteReason", "noteEnd"],
          description: "The work goes on in a later turn, once the callback is answered.",
        },
        fail: {
          target: "failed",
          actions: ["noteReason", "noteEnd"],
          description: "The executor failed; its inputs roll back in the same commit.",
        },
        cancel: {
          target: "cancelled",
          actions: ["noteEnd", "abortExecutor"],
          description: "Somebody cancelled the turn.",
        },
        interrupt: {
          target: "interrupted",
          actions: ["noteReason", "noteEnd", "abortExecutor"],
          description: "The process or the session ended under the turn.",
        },
      },
    },
    completed: {
      type: "final",
      description: "Done; the receipts say what it consumed.",
    },
    callbackPending: {
      type: "final",
      description: "Done as far as it goes; a callback to the host is open.",
    },
    failed: { type: "final", description: "The executor failed." },
    cancelled: { type: "final", description: "Cancelled on request." },
    neverExecuted: {
      type: "final",
      description: "Its executor never began within the bound.",
    },
    interrupted: {
      type: "final",
      description: "Cut off by a crash, a shutdown or the end of the session.",
    },
  },
});
