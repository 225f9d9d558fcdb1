/** What the session chart must do: sections 1 and 6 of the sessions specification, row by row. */
import {
  type SessionContext,
  type SessionEvent,
  type SessionInput,
  sessionMachine,
} from "../../machines/index.js";
import type { ChartRules, Row } from "./chart-rules.js";

type SessionRow = Row<SessionContext, SessionEvent>;

/**
 * Events of every type; generations that are newer, the same and older, and the turn in progress
 * beside another one.
 */
function sessionEvents(context: SessionContext): readonly SessionEvent[] {
  return [
    { type: "register" },
    { type: "attach", generation: context.generation + 1 },
    { type: "attach", generation: context.generation },
    { type: "attach", generation: context.generation - 1 },
    { type: "executor.lost", generation: context.generation },
    { type: "executor.lost", generation: context.generation - 1 },
    { type: "executor.lost", generation: context.generation + 1 },
    { type: "accept" },
    { type: "startTurn", turnId: "turn-1" },
    { type: "turn.ended", turnId: context.turnId ?? "turn-1" },
    { type: "turn.ended", turnId: "turn-other" },
    { type: "retire" },
    { type: "reset" },
    { type: "recycle" },
    { type: "stop" },
    { type: "destroy" },
    { type: "unregister" },
    { type: "resumeRegistration" },
    { type: "unregistered" },
  ];
}

type Changes = Partial<SessionContext>;

const isDraining = (context: SessionContext) => context.registration === "draining";
const isServing = (context: SessionContext) => !isDraining(context);
const hasNoTurn = (context: SessionContext) => context.turnId === null;
const isDrained = (context: SessionContext) => isDraining(context) && hasNoTurn(context);
const hasExecutor = (context: SessionContext) =>
  (isDraining(context) ? context.registrationBeforeDrain : context.registration) === "active";

function registration(context: SessionContext, value: "queuing" | "active"): Changes {
  return isDraining(context) ? { registrationBeforeDrain: value } : { registration: value };
}

const bind = (context: SessionContext, event: { readonly generation: number }): Changes => ({
  ...registration(context, "active"),
  generation: event.generation,
  stateBeforeTurn: context.stateBeforeTurn === "idle" ? "attached" : context.stateBeforeTurn,
});
const unbind = (context: SessionContext): Changes => ({
  ...registration(context, "queuing"),
  stateBeforeTurn: context.stateBeforeTurn === "attached" ? "idle" : context.stateBeforeTurn,
});
const cutOff = (context: SessionContext): Changes => ({ ...unbind(context), ...noTurn() });
const noTurn = (): Changes => ({ turnId: null, stateBeforeTurn: null });
const noSilentIntents = (): Changes => ({ silentIntents: [] });
const registered = (): Changes => ({ registration: "queuing", registrationBeforeDrain: null });

function drain({ registration: before }: SessionContext): Changes {
  return before === "draining" ? {} : { registration: "draining", registrationBeforeDrain: before };
}

function resume(context: SessionContext): Changes {
  return {
    registration: hasExecutor(context) ? "active" : "queuing",
    registrationBeforeDrain: null,
  };
}

function takeTurn(from: "idle" | "attached" | "retired"): SessionRow {
  return {
    from,
    on: "startTurn",
    when: "no drain and no turn",
    if: (context) => isServing(context) && hasNoTurn(context),
    to: "running",
    sets: (_, event) => ({ turnId: event.turnId, stateBeforeTurn: from }),
  };
}

function acceptIn(from: string): SessionRow {
  return { from, on: "accept", when: "no drain", if: isServing, effects: ["wakeLoop"] };
}

function attachIn(from: string, to: string, effects: readonly string[]): SessionRow {
  return {
    from,
    on: "attach",
    when: "the binding is newer",
    if: (context, event) => event.generation > context.generation,
    to,
    sets: bind,
    effects,
  };
}

function executorLostIn(from: string, to: string): SessionRow {
  return {
    from,
    on: "executor.lost",
    when: "it is the present binding",
    if: (context, event) => event.generation === context.generation,
    to,
    sets: unbind,
  };
}

function endsFrom(from: string): readonly SessionRow[] {
  return [
    { from, on: "stop", to: "stopped", sets: cutOff, effects: ["stopExecutor"] },
    {
      from,
      on: "destroy",
      to: "destroyed",
      sets: cutOff,
      effects: ["stopExecutor", "releaseSession"],
    },
  ];
}

function unregistering(from: string, resumeEffects: readonly string[]): readonly SessionRow[] {
  return [
    { from, on: "unregister", sets: drain },
    {
      from,
      on: "resumeRegistration",
      when: "a drain is called off",
      if: isDraining,
      sets: resume,
      effects: resumeEffects,
    },
  ];
}

function unregisteredFrom(from: string, to: string, effects: readonly string[]): SessionRow {
  return {
    from,
    on: "unregistered",
    when: "drained",
    if: isDrained,
    to,
    sets: registered,
    effects,
  };
}

/** Reset and recycle bring a retired session back to where its executor is. */
function backInService(
  on: "reset" | "recycle",
  sets: () => Changes,
  effects: readonly string[],
): readonly SessionRow[] {
  return [
    {
      from: "retired",
      on,
      when: "its executor rests",
      if: (context: SessionContext) => hasNoTurn(context) && hasExecutor(context),
      to: "attached",
      sets,
      effects,
    },
    {
      from: "retired",
      on,
      when: "no executor and no turn",
      if: (context: SessionContext) => hasNoTurn(context) && !hasExecutor(context),
      to: "idle",
      sets,
      effects,
    },
  ];
}

function turnEnded(before: "idle" | "attached" | "retired"): SessionRow {
  return {
    from: "running",
    on: "turn.ended",
    when: `it began while ${before}`,
    if: (context, event) => event.turnId === context.turnId && context.stateBeforeTurn === before,
    to: before,
    sets: noTurn,
    effects: ["wakeLoop"],
  };
}

const rows: readonly SessionRow[] = [
  { from: "initializing", on: "register", to: "idle" },
  { from: "initializing", on: "reset", to: "idle", sets: noSilentIntents },
  ...endsFrom("initializing"),

  acceptIn("idle"),
  attachIn("idle", "attached", ["wakeLoop"]),
  takeTurn("idle"),
  { from: "idle", on: "retire", to: "retired", effects: ["wakeLoop"] },
  { from: "idle", on: "reset", sets: noSilentIntents },
  { from: "idle", on: "recycle", effects: ["wakeLoop"] },
  ...endsFrom("idle"),
  ...unregistering("idle", ["wakeLoop"]),
  unregisteredFrom("idle", "idle", ["releaseSession"]),

  acceptIn("attached"),
  attachIn("attached", "attached", ["wakeLoop"]),
  executorLostIn("attached", "idle"),
  takeTurn("attached"),
  { from: "attached", on: "retire", to: "retired", effects: ["wakeLoop"] },
  { from: "attached", on: "reset", sets: noSilentIntents },
  { from: "attached", on: "recycle", effects: ["wakeLoop"] },
  ...endsFrom("attached"),
  ...unregistering("attached", ["wakeLoop"]),
  unregisteredFrom("attached", "idle", ["stopExecutor", "releaseSession"]),

  acceptIn("running"),
  attachIn("running", "running", []),
  executorLostIn("running", "running"),
  turnEnded("idle"),
  turnEnded("attached"),
  turnEnded("retired"),
  { from: "running", on: "retire", to: "retired" },
  ...endsFrom("running"),
  ...unregistering("running", []),

  attachIn("retired", "retired", ["wakeLoop"]),
  executorLostIn("retired", "retired"),
  takeTurn("retired"),
  {
    from: "retired",
    on: "turn.ended",
    when: "it is the one in flight",
    if: (context, event) => event.turnId === context.turnId,
    sets: noTurn,
    effects: ["wakeLoop"],
  },
  { from: "retired", on: "retire" },
  ...backInService("reset", noSilentIntents, []),
  ...backInService("recycle", () => ({}), ["wakeLoop"]),
  ...endsFrom("retired"),
  ...unregistering("retired", ["wakeLoop"]),
  unregisteredFrom("retired", "retired", ["stopExecutor", "releaseSession"]),

  { from: "stopped", on: "register", to: "idle", sets: registered },
  { from: "stopped", on: "stop" },
  { from: "stopped", on: "destroy", to: "destroyed", effects: ["releaseSession"] },
  ...unregistering("stopped", []),
  unregisteredFrom("stopped", "stopped", ["releaseSession"]),
];

export const sessionRules: ChartRules<SessionContext, SessionEvent> = {
  machine: sessionMachine,
  inputs: {
    "two silent intents": { sessionId: "session-1", silentIntents: ["ping", "typing"] },
    "no silent intents": { sessionId: "session-1" },
  },
  initial: {
    state: "initializing",
    context: (input: SessionInput) => ({
      sessionId: input.sessionId,
      turnId: null,
      stateBeforeTurn: null,
      generation: 0,
      registration: "queuing",
      registrationBeforeDrain: null,
      silentIntents: input.silentIntents ?? [],
    }),
  },
  finals: ["destroyed"],
  events: sessionEvents,
  project: ({ sessionId: _, generation: __, ...rest }) => rest,
  rows,
  accepts: `
              register attach executor.lost accept startTurn turn.ended retire reset recycle stop destroy unregister resumeRegistration unregistered
initializing  +        .      .             .      .         .          .      +     .       +    +       .          .                  .
idle          .        ?      .             ?      ?         .          +      +     +       +    +       +          ?                  ?
attached      .        ?      ?             ?      ?         .          +      +     +       +    +       +          ?                  ?
running       .        ?      ?             ?      .         ?          +      .     .       +    +       +          ?                  .
retired       .        ?      ?             .      ?         ?          +      ?     ?       +    +       +          ?                  ?
stopped       +        .      .             .      .         .          .      .     .       +    +       +          ?                  ?
destroyed     .        .      .             .      .         .          .      .     .       .    .       .          .                  .
`,
  invariants: [
    {
      title: "a running session has a turn, and only a retired one may have one beside it",
      holds: (state, { turnId }) =>
        state === "running" ? turnId !== null : state === "retired" || turnId === null,
    },
    {
      title: "the state before the turn is known exactly while there is a turn",
      holds: (_, { turnId, stateBeforeTurn }) => (turnId === null) === (stateBeforeTurn === null),
    },
    {
      title: "an attached session has an executor, and one that never had or lost it has none",
      holds: (state, context) =>
        state === "attached"
          ? hasExecutor(context)
          : ["running", "retired"].includes(state) || !hasExecutor(context),
    },
    {
      title: "a turn goes back to attached exactly when there is an executor to go back to",
      holds: (_, context) =>
        context.stateBeforeTurn === null ||
        context.stateBeforeTurn === "retired" ||
        (context.stateBeforeTurn === "attached") === hasExecutor(context),
    },
    {
      title: "what to return to is known exactly while draining",
      holds: (_, context) => isDraining(context) === (context.registrationBeforeDrain !== null),
    },
  ],
  moves: [
    {
      title: "the identity never changes",
      holds: (before, after) => before.sessionId === after.sessionId,
    },
    {
      title: "the generation never falls",
      holds: (before, after) => before.generation <= after.generation,
    },
    {
      title: "no turn begins while another is in progress or during a drain",
      holds: (before, after) =>
        before.turnId === after.turnId ||
        after.turnId === null ||
        (before.turnId === null && isServing(before)),
    },
    {
      title: "silent intents are cleared or kept",
      holds: (before, after) =>
        after.silentIntents.length === 0 || after.silentIntents === before.silentIntents,
    },
  ],
};
