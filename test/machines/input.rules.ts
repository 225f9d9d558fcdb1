/** What the input chart must do: sections 2 and 7 of the sessions specification, row by row. */
import {
  type AbandonReason,
  type InputContext,
  type InputEvent,
  type InputInput,
  inputMachine,
} from "../../machines/index.js";
import type { ChartRules, Row } from "./chart-rules.js";

type InputRow = Row<InputContext, InputEvent>;

const at = "2026-01-02T03:04:05.678Z";
const ends = ["consumed", "superseded", "coalesced", "abandoned"];
const cancelled: AbandonReason = { code: "cancelled" };

/** Events of every type; of those whose payload a guard reads, one that fits and one that does not. */
function inputEvents(context: InputContext): readonly InputEvent[] {
  return [
    { type: "queue", at },
    { type: "consumeOnAccept", at },
    { type: "stage", at, turnId: `turn-${context.attempts + 1}` },
    { type: "rollback", at },
    { type: "requeue", at },
    { type: "apply", at, turnId: context.lastTurnId ?? "turn-none" },
    { type: "apply", at, turnId: "turn-other" },
    { type: "awaitConsumption", at, sequence: 0 },
    { type: "awaitConsumption", at, sequence: 7 },
    { type: "consume", at },
    { type: "supersede", at, by: "input-2" },
    { type: "coalesce", at, into: "input-3" },
    { type: "abandon", at, reason: cancelled },
  ];
}

/** The row "any state that is not an end, abandon", for one state. */
function abandonFrom(from: string, effects: readonly string[]): InputRow {
  return {
    from,
    on: "abandon",
    to: "abandoned",
    sets: (_, event) => ({ outcome: { type: "abandoned", reason: event.reason } }),
    effects,
  };
}

/** Recovery takes an input back; the attempt that a crash cut off stays counted. */
function requeueFrom(from: string): InputRow {
  return {
    from,
    on: "requeue",
    to: "queued",
    sets: (context) => ({ recoveries: context.recoveries + 1 }),
    effects: ["enterLane"],
  };
}

const rows: readonly InputRow[] = [
  { from: "accepted", on: "queue", to: "queued", effects: ["enterLane"] },
  {
    from: "accepted",
    on: "consumeOnAccept",
    to: "consumed",
    sets: () => ({ outcome: { type: "consumed" } }),
    effects: ["tellEnd"],
  },
  abandonFrom("accepted", ["tellEnd"]),
  {
    from: "queued",
    on: "stage",
    to: "staged",
    sets: (context, event) => ({
      lastTurnId: event.turnId,
      lastBoundarySequence: null,
      attempts: context.attempts + 1,
    }),
    effects: ["leaveLane"],
  },
  {
    from: "queued",
    on: "supersede",
    to: "superseded",
    sets: (_, event) => ({ outcome: { type: "superseded", by: event.by } }),
    effects: ["leaveLane", "tellEnd"],
  },
  {
    from: "queued",
    on: "coalesce",
    to: "coalesced",
    sets: (_, event) => ({ outcome: { type: "coalesced", into: event.into } }),
    effects: ["leaveLane", "tellEnd"],
  },
  abandonFrom("queued", ["leaveLane", "tellEnd"]),
  {
    from: "staged",
    on: "rollback",
    when: "attempts are left",
    if: (context) => context.attempts - context.recoveries < context.attemptsMax,
    to: "queued",
    effects: ["enterLane"],
  },
  {
    from: "staged",
    on: "rollback",
    when: "no attempt is left",
    if: (context) => context.attempts - context.recoveries >= context.attemptsMax,
    to: "abandoned",
    sets: ({ attempts }) => ({
      outcome: { type: "abandoned", reason: { code: "maxAttemptsExhausted", attempts } },
    }),
    effects: ["tellEnd"],
  },
  requeueFrom("staged"),
  {
    from: "staged",
    on: "apply",
    when: "its turn says so",
    if: (context, event) => event.turnId === context.lastTurnId,
    to: "applied",
  },
  abandonFrom("staged", ["tellEnd"]),
  {
    from: "applied",
    on: "awaitConsumption",
    to: "appliedPendingConsumption",
    sets: (_, event) => ({ lastBoundarySequence: event.sequence }),
  },
  requeueFrom("applied"),
  abandonFrom("applied", ["tellEnd"]),
  {
    from: "appliedPendingConsumption",
    on: "consume",
    to: "consumed",
    sets: () => ({ outcome: { type: "consumed" } }),
    effects: ["tellEnd"],
  },
  requeueFrom("appliedPendingConsumption"),
  abandonFrom("appliedPendingConsumption", ["tellEnd"]),
];

function count(context: InputContext, event: string): number {
  return context.history.filter((move) => move.event === event).length;
}

export const inputRules: ChartRules<InputContext, InputEvent> = {
  machine: inputMachine,
  inputs: {
    "one attempt": { inputId: "input-1", attemptsMax: 1 },
    "two attempts": { inputId: "input-1", attemptsMax: 2 },
    "three attempts": { inputId: "input-1", attemptsMax: 3 },
  },
  initial: {
    state: "accepted",
    context: (input: InputInput) => ({
      ...input,
      attempts: 0,
      recoveries: 0,
      lastTurnId: null,
      lastBoundarySequence: null,
      outcome: null,
      history: [],
    }),
  },
  finals: ends,
  events: inputEvents,
  project: (context) => ({
    uncut: Math.min(context.attempts - context.recoveries, context.attemptsMax),
    hasRecoveries: context.recoveries > 0,
    hasTurn: context.lastTurnId !== null,
    hasBoundary: context.lastBoundarySequence !== null,
    outcome: context.outcome,
  }),
  rows,
  everyMove: (context, event, from, to) => ({
    history: [...context.history, { at: event.at, from, to, event: event.type }],
  }),
  accepts: `
                            queue consumeOnAccept stage rollback requeue apply awaitConsumption consume supersede coalesce abandon
accepted                    +     +               .     .        .       .     .                .       .         .        +
queued                      .     .               +     .        .       .     .                .       +         +        +
staged                      .     .               .     +        +       ?     .                .       .         .        +
applied                     .     .               .     .        +       .     +                .       .         .        +
appliedPendingConsumption   .     .               .     .        +       .     .                +       .         .        +
consumed                    .     .               .     .        .       .     .                .       .         .        .
superseded                  .     .               .     .        .       .     .                .       .         .        .
coalesced                   .     .               .     .        .       .     .                .       .         .        .
abandoned                   .     .               .     .        .       .     .                .       .         .        .
`,
  invariants: [
    {
      title: "an ended input has the outcome of its end, and no other has one",
      holds: (state, { outcome }) =>
        ends.includes(state) ? outcome?.type === state : outcome === null,
    },
    {
      title: "the history is a chain from accepted to the state it is in",
      holds: (state, { history }) =>
        ["accepted", ...history.map((move) => move.to)].every(
          (from, index) => from === (history[index]?.from ?? state),
        ),
    },
    {
      title: "attempts that no restart cut off stay within the limit",
      holds: (_, context) => context.attempts - context.recoveries <= context.attemptsMax,
    },
    {
      title: "attempts count the times it was staged",
      holds: (_, context) => context.attempts === count(context, "stage"),
    },
    {
      title: "recoveries count the times a restart took it back",
      holds: (_, context) => context.recoveries === count(context, "requeue"),
    },
    {
      title: "an input in the hands of a turn names it",
      holds: (state, { lastTurnId }) =>
        !["staged", "applied", "appliedPendingConsumption"].includes(state) || lastTurnId !== null,
    },
    {
      title: "a boundary is named from its receipt on, and never that of an earlier turn",
      holds: (state, { lastBoundarySequence }) =>
        state === "appliedPendingConsumption"
          ? lastBoundarySequence !== null
          : !["accepted", "staged", "applied"].includes(state) || lastBoundarySequence === null,
    },
  ],
  moves: [
    {
      title: "the identity and the limit never change",
      holds: (before, after) =>
        before.inputId === after.inputId && before.attemptsMax === after.attemptsMax,
    },
    {
      title: "counts never fall and the history only grows",
      holds: (before, after) =>
        after.attempts >= before.attempts &&
        after.recoveries >= before.recoveries &&
        after.history.length === before.history.length + 1,
    },
  ],
};
