/** What the turn chart must do: sections 6 and 7 of the sessions specification, row by row. */
import {
  type TurnContext,
  type TurnEvent,
  type TurnInput,
  turnMachine,
} from "../../machines/index.js";
import type { ChartRules, Row } from "./chart-rules.js";

type TurnRow = Row<TurnContext, TurnEvent>;

const at = "2026-01-02T03:04:05.678Z";
const ends = [
  "completed",
  "callbackPending",
  "failed",
  "cancelled",
  "neverExecuted",
  "interrupted",
];

/** Events of every type; boundaries with the next sequence, one that repeats and one that skips. */
function turnEvents(context: TurnContext): readonly TurnEvent[] {
  return [
    { type: "begin", at },
    { type: "boundary.reached", at, sequence: context.boundaries },
    { type: "boundary.reached", at, sequence: context.boundaries - 1 },
    { type: "boundary.reached", at, sequence: context.boundaries + 1 },
    { type: "inputs.joined", at, inputIds: ["input-3"] },
    { type: "complete", at },
    { type: "awaitCallback", at, tool: "lookUp" },
    { type: "fail", at, reason: "exit 1" },
    { type: "cancel", at },
    { type: "expire", at },
    { type: "interrupt", at, reason: "restart" },
  ];
}

const end = (_: TurnContext, event: TurnEvent) => ({ endedAt: event.at });
const endWithReason = (
  _: TurnContext,
  event: { readonly at: string; readonly reason: string },
) => ({
  endedAt: event.at,
  reason: event.reason,
});

function unhappyEndsFrom(from: string): readonly TurnRow[] {
  return [
    { from, on: "fail", to: "failed", sets: endWithReason },
    { from, on: "cancel", to: "cancelled", sets: end, effects: ["abortExecutor"] },
    { from, on: "interrupt", to: "interrupted", sets: endWithReason, effects: ["abortExecutor"] },
  ];
}

const rows: readonly TurnRow[] = [
  {
    from: "staged",
    on: "begin",
    to: "executing",
    sets: (_, event) => ({ begunAt: event.at }),
  },
  { from: "staged", on: "expire", to: "neverExecuted", sets: end },
  ...unhappyEndsFrom("staged"),
  {
    from: "executing",
    on: "boundary.reached",
    when: "it is the next one",
    if: (context, event) => event.sequence === context.boundaries,
    sets: (context) => ({ boundaries: context.boundaries + 1 }),
  },
  {
    from: "executing",
    on: "inputs.joined",
    sets: (context, event) => ({ inputIds: [...context.inputIds, ...event.inputIds] }),
  },
  {
    from: "executing",
    on: "complete",
    when: "a boundary is behind it",
    if: (context) => context.boundaries > 0,
    to: "completed",
    sets: end,
  },
  {
    from: "executing",
    on: "awaitCallback",
    when: "a boundary is behind it",
    if: (context) => context.boundaries > 0,
    to: "callbackPending",
    sets: (_, event) => ({ endedAt: event.at, reason: `callback ${event.tool}` }),
  },
  ...unhappyEndsFrom("executing"),
];

export const turnRules: ChartRules<TurnContext, TurnEvent> = {
  machine: turnMachine,
  inputs: {
    "two inputs": {
      turnId: "turn-1",
      sessionId: "session-1",
      inputIds: ["input-1", "input-2"],
      boundary: "turnStart",
      stagedAt: at,
    },
  },
  initial: {
    state: "staged",
    context: (input: TurnInput) => ({
      ...input,
      begunAt: null,
      endedAt: null,
      boundaries: 0,
      reason: null,
    }),
  },
  finals: ends,
  events: turnEvents,
  project: (context) => ({
    boundaries: Math.min(context.boundaries, 3),
    joined: Math.min(context.inputIds.length, 4),
    hasBegun: context.begunAt !== null,
    reason: context.reason,
  }),
  rows,
  accepts: `
                 begin boundary.reached inputs.joined complete awaitCallback fail cancel expire interrupt
staged           +     .                .             .        .             +    +      +      +
executing        .     ?                +             ?        ?             +    +      .      +
completed        .     .                .             .        .             .    .      .      .
callbackPending  .     .                .             .        .             .    .      .      .
failed           .     .                .             .        .             .    .      .      .
cancelled        .     .                .             .        .             .    .      .      .
neverExecuted    .     .                .             .        .             .    .      .      .
interrupted      .     .                .             .        .             .    .      .      .
`,
  invariants: [
    {
      title: "a turn has an end exactly when it has ended",
      holds: (state, { endedAt }) => (endedAt !== null) === ends.includes(state),
    },
    {
      title: "only a turn that has begun has boundaries",
      holds: (_, { begunAt, boundaries }) => boundaries === 0 || begunAt !== null,
    },
    {
      title: "executing means begun, and staged or never executed means not",
      holds: (state, { begunAt }) => {
        if (["executing", "completed", "callbackPending"].includes(state)) return begunAt !== null;
        return !["staged", "neverExecuted"].includes(state) || begunAt === null;
      },
    },
    {
      title: "a turn that is done has a boundary",
      holds: (state, { boundaries }) =>
        !["completed", "callbackPending"].includes(state) || boundaries > 0,
    },
    {
      title: "ends that need a reason have one, and nothing else has",
      holds: (state, { reason }) =>
        (reason !== null) === ["failed", "interrupted", "callbackPending"].includes(state),
    },
  ],
  moves: [
    {
      title: "boundaries are contiguous",
      holds: (before, after) => [0, 1].includes(after.boundaries - before.boundaries),
    },
    {
      title: "what a turn is never changes, and what it holds is only added to",
      holds: (before, after) =>
        before.turnId === after.turnId &&
        before.sessionId === after.sessionId &&
        before.boundary === after.boundary &&
        before.stagedAt === after.stagedAt &&
        before.inputIds.every((id, place) => after.inputIds[place] === id),
    },
  ],
};
