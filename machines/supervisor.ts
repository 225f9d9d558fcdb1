/**
 * The supervisor chart governs one process's reign over a store: it opens, checks and recovers
 * before it serves, and it stops taking work before it lets go. It is the one chart whose states
 * belong to a process, so it is live only: nothing of it is stored, and every opening begins anew.
 */
import { assign, setup } from "xstate";

export type CloseMode = "drain" | "cancel-and-drain";

export interface SupervisorContext {
  readonly supervisorId: string;
  readonly mode: CloseMode | null;
  /** The first cause of a fatal end; later ones do not replace it. */
  readonly reason: string | null;
}

export type SupervisorEvent =
  | { readonly type: "store.opened" }
  | { readonly type: "store.verified" }
  | { readonly type: "sessions.recovered" }
  | { readonly type: "close"; readonly mode: CloseMode }
  | { readonly type: "work.left" }
  | { readonly type: "work.joined" }
  | { readonly type: "fail"; readonly reason: string };

export const supervisorMachine = setup({
  types: {
    context: {} as SupervisorContext,
    events: {} as SupervisorEvent,
    input: {} as { readonly supervisorId: string },
  },
  guards: {
    cutsTurns: ({ event }) => event.type === "close" && event.mode === "cancel-and-drain",
  },
  actions: {
    noteMode: assign(({ event }) => (event.type === "close" ? { mode: event.mode } : {})),
    noteReason: assign(({ event }) => (event.type === "fail" ? { reason: event.reason } : {})),
    /** Effect: turns in flight are cut off and their inputs put back. */
    interruptTurns: () => {},
    /** Effect: handles answer that they are closed. */
    refuseCalls: () => {},
  },
}).createMachine({
  id: "supervisor",
  version: "1",
  initial: "opening",
  context: ({ input }) => ({
    supervisorId: input.supervisorId,
    mode: null,
    reason: null,
  }),
  states: {
    opening: {
      description: "The store is being opened.",
      on: {
        "store.opened": {
          target: "verifying",
          description: "The store is ours.",
        },
        fail: {
          target: "failed",
          actions: ["noteReason", "refuseCalls"],
          description: "The store could not be opened.",
        },
      },
    },
    verifying: {
      description: "Identity and format of the store are checked.",
      on: {
        "store.verified": {
          target: "recovering",
          description: "The store is what it says.",
        },
        fail: {
          target: "failed",
          actions: ["noteReason", "refuseCalls"],
          description: "The store contradicts itself.",
        },
      },
    },
    recovering: {
      description: "Sessions with live work are found; none is served yet.",
      on: {
        "sessions.recovered": {
          target: "serving",
          description: "All live work is known.",
        },
        fail: {
          target: "failed",
          actions: ["noteReason", "refuseCalls"],
          description: "The live work could not be read.",
        },
      },
    },
    serving: {
      description: "Takes inputs and moves sessions.",
      on: {
        close: [
          {
            guard: "cutsTurns",
            target: "draining",
            actions: ["noteMode", "interruptTurns"],
            description: "No new work from here on, and turns in flight are cut off.",
          },
          {
            target: "draining",
            actions: "noteMode",
            description: "No new work from here on; turns in flight may end.",
          },
        ],
        fail: {
          target: "failed",
          actions: ["noteReason", "refuseCalls"],
          description: "The store contradicts itself, or can no longer be written.",
        },
      },
    },
    draining: {
      description: "Joins what it owns.",
      on: {
        "work.joined": {
          target: "closed",
          actions: "refuseCalls",
          description: "Everything it owned has ended.",
        },
        "work.left": {
          description: "The time for closing has passed; closing can be asked again.",
        },
        close: [
          {
            guard: "cutsTurns",
            actions: ["noteMode", "interruptTurns"],
            description: "Asked again, with less patience.",
          },
          { actions: "noteMode", description: "Asked again; turns in flight may end." },
        ],
        fail: {
          target: "failed",
          actions: ["noteReason", "refuseCalls"],
          description: "The store failed on the way out.",
        },
      },
    },
    failed: {
      description: "Fatal: nothing is served; accepted commits are awaited.",
      on: {
        fail: { description: "The first cause stays; later ones change nothing." },
        close: {
          actions: ["noteMode", "interruptTurns"],
          description: "Joins what is left; turns are cut off, as nothing of them can be written.",
        },
        "work.left": {
          description: "The time for closing has passed; closing can be asked again.",
        },
        "work.joined": {
          target: "closed",
          description: "Everything it owned has ended.",
        },
      },
    },
    closed: { type: "final", description: "Nothing is left of it." },
  },
});
