/**
 * The session chart governs the runtime of one durable conversation: whether it takes inputs,
 * whether it may start a turn, which turn is in progress, and how it is retired, reset, recycled,
 * stopped, unregistered and destroyed. What its inputs do is the input chart's matter. `attached`
 * belongs to a process and is written as `idle`; a registration that is draining is written as
 * `queuing`, so that a crash never replays it.
 */
import { assign, setup } from "xstate";

/** Who may take inputs off the lanes: nobody yet, the turn loop, or nobody any more. */
export type Registration = "queuing" | "active" | "draining";

export interface SessionContext {
  readonly sessionId: string;
  readonly turnId: string | null;
  /** Where the session was when its turn began, so that it returns there. */
  readonly stateBeforeTurn: "idle" | "attached" | "retired" | null;
  /** Number of the executor binding; news of an older binding is refused. */
  readonly generation: number;
  readonly registration: Registration;
  /** What the registration was when its drain began, so that a drain called off returns there. */
  readonly registrationBeforeDrain: "queuing" | "active" | null;
  /** Intents of peer requests that do not wake the session. */
  readonly silentIntents: readonly string[];
}

export interface SessionInput {
  readonly sessionId: string;
  readonly silentIntents?: readonly string[];
}

export type SessionEvent =
  | { readonly type: "register" }
  | { readonly type: "attach"; readonly generation: number }
  | { readonly type: "executor.lost"; readonly generation: number }
  | { readonly type: "accept" }
  | { readonly type: "startTurn"; readonly turnId: string }
  | { readonly type: "turn.ended"; readonly turnId: string }
  | { readonly type: "retire" }
  | { readonly type: "reset" }
  | { readonly type: "recycle" }
  | { readonly type: "stop" }
  | { readonly type: "destroy" }
  | { readonly type: "unregister" }
  | { readonly type: "resumeRegistration" }
  | { readonly type: "unregistered" };

/** Sets the registration, or, during a drain, what it returns to when the drain is called off. */
function withRegistration(context: SessionContext, registration: "queuing" | "active") {
  return context.registration === "draining"
    ? { registrationBeforeDrain: registration }
    : { registration };
}

export const sessionMachine = setup({
  types: {
    context: {} as SessionContext,
    events: {} as SessionEvent,
    input: {} as SessionInput,
  },
  guards: {
    isNewerGeneration: ({ context, event }) =>
      event.type === "attach" && event.generation > context.generation,
    isOurGeneration: ({ context, event }) =>
      event.type === "executor.lost" && event.generation === context.generation,
    isRegistered: ({ context }) => context.registration !== "draining",
    mayStartTurn: ({ context }) => context.registration !== "draining" && context.turnId === null,
    isDraining: ({ context }) => context.registration === "draining",
    isDrained: ({ context }) => context.registration === "draining" && context.turnId === null,
    hasRestingExecutor: ({ context }) =>
      context.turnId === null &&
      (context.registration === "active" ||
        (context.registration === "draining" && context.registrationBeforeDrain === "active")),
    isIdleOfTurns: ({ context }) => context.turnId === null,
    endsTurnInAttached: ({ context, event }) =>
      event.type === "turn.ended" &&
      event.turnId === context.turnId &&
      context.stateBeforeTurn === "attached",
    endsTurnInRetired: ({ context, event }) =>
      event.type === "turn.ended" &&
      event.turnId === context.turnId &&
      context.stateBeforeTurn === "retired",
    endsTurn: ({ context, event }) =>
      event.type === "turn.ended" && event.turnId === context.turnId,
  },
  actions: {
    bindExecutor: assign(({ context, event }) =>
      event.type === "attach"
        ? {
            generation: event.generation,
            ...withRegistration(context, "active"),
            stateBeforeTurn:
              context.stateBeforeTurn === "idle" ? "attached" : context.stateBeforeTurn,
          }
        : {},
    ),
    unbindExecutor: assign(({ context }) => ({
      ...withRegistration(context, "queuing"),
      stateBeforeTurn: context.stateBeforeTurn === "attached" ? "idle" : context.stateBeforeTurn,
    })),
    takeTurn: assign(({ event }, params: { readonly from: "idle" | "attached" | "retired" }) =>
      event.type === "startTurn" ? { turnId: event.turnId, stateBeforeTurn: params.from } : {},
    ),
    releaseTurn: assign({ turnId: null, stateBeforeTurn: null }),
    clearSilentIntents: assign({ silentIntents: [] }),
    beginRegistration: assign({ registration: "queuing", registrationBeforeDrain: null }),
    beginDrain: assign(({ context }) =>
      context.registration === "draining"
        ? {}
        : { registration: "draining", registrationBeforeDrain: context.registration },
    ),
    resumeRegistration: assign(({ context }) => ({
      registration: context.registrationBeforeDrain ?? "queuing",
      registrationBeforeDrain: null,
    })),
    /** Effect: the turn loop looks at the lanes. */
    wakeLoop: () => {},
    /** Effect: the executor of this session is stopped. */
    stopExecutor: () => {},
    /** Effect: the session leaves the registry. */
    releaseSession: () => {},
  },
}).createMachine({
  id: "session",
  version: "1",
  initial: "initializing",
  context: ({ input }) => ({
    sessionId: input.sessionId,
    turnId: null,
    stateBeforeTurn: null,
    generation: 0,
    registration: "queuing",
    registrationBeforeDrain: null,
    silentIntents: input.silentIntents ?? [],
  }),
  states: {
    initializing: {
      description: "Known, not yet registered.",
      on: {
        register: {
          target: "idle",
          description: "The session may take inputs.",
        },
        reset: {
          target: "idle",
          actions: "clearSilentIntents",
          description: "Registered with nothing on its lanes.",
        },
        stop: {
          target: "stopped",
          actions: "stopExecutor",
          description: "Stopped before it began.",
        },
        destroy: {
          target: "destroyed",
          actions: ["stopExecutor", "releaseSession"],
          description: "Destroyed before it began.",
        },
      },
    },
    idle: {
      description: "Registered, with no executor; inputs wait on their lanes.",
      on: {
        accept: {
          guard: "isRegistered",
          actions: "wakeLoop",
          description: "An input is admitted; the state is as before.",
        },
        attach: {
          guard: "isNewerGeneration",
          target: "attached",
          actions: ["bindExecutor", "wakeLoop"],
          description: "An executor is there.",
        },
        startTurn: {
          guard: "mayStartTurn",
          target: "running",
          actions: { type: "takeTurn", params: { from: "idle" } },
          description: "A turn takes inputs without a lasting executor.",
        },
        retire: {
          target: "retired",
          actions: "wakeLoop",
          description: "No new inputs; what waits may drain.",
        },
        reset: {
          actions: "clearSilentIntents",
          description: "All inputs are given up, the session goes on.",
        },
        recycle: {
          actions: "wakeLoop",
          description: "Inputs are read from their rows again.",
        },
        stop: {
          target: "stopped",
          actions: "stopExecutor",
          description: "All inputs are given up and the executor is stopped.",
        },
        destroy: {
          target: "destroyed",
          actions: ["stopExecutor", "releaseSession"],
          description: "The end of the session.",
        },
        unregister: {
          actions: "beginDrain",
          description: "No turn begins any more.",
        },
        resumeRegistration: {
          guard: "isDraining",
          actions: ["resumeRegistration", "wakeLoop"],
          description: "Unregistering did not commit; the session goes on.",
        },
        unregistered: {
          guard: "isDrained",
          actions: ["beginRegistration", "releaseSession"],
          description: "Nothing is in flight; the session leaves the registry.",
        },
      },
    },
    attached: {
      description: "Its executor is live and waits for work.",
      on: {
        accept: {
          guard: "isRegistered",
          actions: "wakeLoop",
          description: "An input is admitted; the state is as before.",
        },
        attach: {
          guard: "isNewerGeneration",
          actions: ["bindExecutor", "wakeLoop"],
          description: "Another executor takes over.",
        },
        "executor.lost": {
          guard: "isOurGeneration",
          target: "idle",
          actions: "unbindExecutor",
          description: "The executor is gone.",
        },
        startTurn: {
          guard: "mayStartTurn",
          target: "running",
          actions: { type: "takeTurn", params: { from: "attached" } },
          description: "A turn takes inputs.",
        },
        retire: {
          target: "retired",
          actions: "wakeLoop",
          description: "No new inputs; what waits drains.",
        },
        reset: {
          actions: "clearSilentIntents",
          description: "All inputs are given up, the session goes on.",
        },
        recycle: {
          actions: "wakeLoop",
          description: "Inputs are read from their rows again.",
        },
        stop: {
          target: "stopped",
          actions: ["unbindExecutor", "stopExecutor"],
          description: "All inputs are given up and the executor is stopped.",
        },
        destroy: {
          target: "destroyed",
          actions: ["unbindExecutor", "stopExecutor", "releaseSession"],
          description: "The end of the session.",
        },
        unregister: {
          actions: "beginDrain",
          description: "No turn begins any more.",
        },
        resumeRegistration: {
          guard: "isDraining",
          actions: ["resumeRegistration", "wakeLoop"],
          description: "Unregistering did not commit; the session goes on.",
        },
        unregistered: {
          guard: "isDrained",
          target: "idle",
          actions: ["beginRegistration", "stopExecutor", "releaseSession"],
          description: "Nothing is in flight; the session leaves the registry.",
        },
      },
    },
    running: {
      description: "Exactly one turn is in progress.",
      on: {
        accept: {
          guard: "isRegistered",
          actions: "wakeLoop",
          description: "An input is admitted; a later turn or boundary takes it.",
        },
        attach: {
          guard: "isNewerGeneration",
          actions: ["bindExecutor"],
          description: "Another executor takes over after this turn.",
        },
        "executor.lost": {
          guard: "isOurGeneration",
          actions: "unbindExecutor",
          description: "The executor is gone; the session will return to idle.",
        },
        "turn.ended": [
          {
            guard: "endsTurnInAttached",
            target: "attached",
            actions: ["releaseTurn", "wakeLoop"],
            description: "Back to where the turn began.",
          },
          {
            guard: "endsTurnInRetired",
            target: "retired",
            actions: ["releaseTurn", "wakeLoop"],
            description: "A draining session goes on draining.",
          },
          {
            guard: "endsTurn",
            target: "idle",
            actions: ["releaseTurn", "wakeLoop"],
            description: "No executor is attached any more.",
          },
        ],
        retire: {
          target: "retired",
          description: "No new inputs; the turn in flight may still commit.",
        },
        stop: {
          target: "stopped",
          actions: ["releaseTurn", "unbindExecutor", "stopExecutor"],
          description: "The turn is cut off, all inputs are given up.",
        },
        destroy: {
          target: "destroyed",
          actions: ["releaseTurn", "unbindExecutor", "stopExecutor", "releaseSession"],
          description: "The end of the session.",
        },
        unregister: {
          actions: "beginDrain",
          description: "The turn in flight may still commit; no other begins.",
        },
        resumeRegistration: {
          guard: "isDraining",
          actions: "resumeRegistration",
          description: "Unregistering did not commit; the session goes on.",
        },
      },
    },
    retired: {
      description: "Takes no new input; what it holds may drain.",
      on: {
        attach: {
          guard: "isNewerGeneration",
          actions: ["bindExecutor", "wakeLoop"],
          description: "An executor that drains what is left.",
        },
        "executor.lost": {
          guard: "isOurGeneration",
          actions: "unbindExecutor",
          description: "The executor is gone.",
        },
        startTurn: {
          guard: "mayStartTurn",
          target: "running",
          actions: { type: "takeTurn", params: { from: "retired" } },
          description: "A turn drains inputs.",
        },
        "turn.ended": {
          guard: "endsTurn",
          actions: ["releaseTurn", "wakeLoop"],
          description: "The turn that was in flight at retirement has ended.",
        },
        retire: {
          description: "Already retired; asking again changes nothing.",
        },
        reset: [
          {
            guard: "hasRestingExecutor",
            target: "attached",
            actions: "clearSilentIntents",
            description: "Back in service with its executor, all inputs given up.",
          },
          {
            guard: "isIdleOfTurns",
            target: "idle",
            actions: "clearSilentIntents",
            description: "Back in service, all inputs given up.",
          },
        ],
        recycle: [
          {
            guard: "hasRestingExecutor",
            target: "attached",
            actions: "wakeLoop",
            description: "Back in service with its executor, inputs read again.",
          },
          {
            guard: "isIdleOfTurns",
            target: "idle",
            actions: "wakeLoop",
            description: "Back in service, inputs read again.",
          },
        ],
        stop: {
          target: "stopped",
          actions: ["releaseTurn", "unbindExecutor", "stopExecutor"],
          description: "All inputs are given up and the executor is stopped.",
        },
        destroy: {
          target: "destroyed",
          actions: ["releaseTurn", "unbindExecutor", "stopExecutor", "releaseSession"],
          description: "The end of the session.",
        },
        unregister: {
          actions: "beginDrain",
          description: "No turn begins any more.",
        },
        resumeRegistration: {
          guard: "isDraining",
          actions: ["resumeRegistration", "wakeLoop"],
          description: "Unregistering did not commit; the session goes on.",
        },
        unregistered: {
          guard: "isDrained",
          actions: ["beginRegistration", "stopExecutor", "releaseSession"],
          description: "Nothing is in flight; the session leaves the registry.",
        },
      },
    },
    stopped: {
      description: "The executor is gone and all inputs are given up; the identity is kept.",
      on: {
        register: {
          target: "idle",
          actions: "beginRegistration",
          description: "Taken back into service.",
        },
        stop: { description: "Already stopped; asking again changes nothing." },
        destroy: {
          target: "destroyed",
          actions: "releaseSession",
          description: "The end of the session.",
        },
        unregister: {
          actions: "beginDrain",
          description: "On its way out of the registry.",
        },
        resumeRegistration: {
          guard: "isDraining",
          actions: "resumeRegistration",
          description: "Unregistering did not commit; the session stays stopped.",
        },
        unregistered: {
          guard: "isDrained",
          actions: ["beginRegistration", "releaseSession"],
          description: "The session leaves the registry.",
        },
      },
    },
    destroyed: {
      type: "final",
      description: "The end; nothing is accepted any more.",
    },
  },
});
