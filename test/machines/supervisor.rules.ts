/** What the supervisor chart must do: open, verify, recover, serve, drain, close; or fail. */
import {
  type SupervisorContext,
  type SupervisorEvent,
  supervisorMachine,
} from "../../machines/index.js";
import type { ChartRules, Row } from "./chart-rules.js";

type SupervisorRow = Row<SupervisorContext, SupervisorEvent>;

/** Events of every type; closing in both modes, failing for the first and for a later cause. */
function supervisorEvents(context: SupervisorContext): readonly SupervisorEvent[] {
  return [
    { type: "store.opened" },
    { type: "store.verified" },
    { type: "sessions.recovered" },
    { type: "close", mode: "drain" },
    { type: "close", mode: "cancel-and-drain" },
    { type: "work.left" },
    { type: "work.joined" },
    { type: "fail", reason: context.reason === null ? "disk full" : "lock lost" },
  ];
}

function failureFrom(from: string): SupervisorRow {
  return {
    from,
    on: "fail",
    to: "failed",
    sets: (_, event) => ({ reason: event.reason }),
    effects: ["refuseCalls"],
  };
}

function closeFrom(from: string, to: string): readonly SupervisorRow[] {
  return [
    {
      from,
      on: "close",
      when: "turns may end",
      if: (_, event) => event.mode === "drain",
      to,
      sets: () => ({ mode: "drain" }),
    },
    {
      from,
      on: "close",
      when: "turns are cut off",
      if: (_, event) => event.mode === "cancel-and-drain",
      to,
      sets: () => ({ mode: "cancel-and-drain" }),
      effects: ["interruptTurns"],
    },
  ];
}

const rows: readonly SupervisorRow[] = [
  { from: "opening", on: "store.opened", to: "verifying" },
  failureFrom("opening"),
  { from: "verifying", on: "store.verified", to: "recovering" },
  failureFrom("verifying"),
  { from: "recovering", on: "sessions.recovered", to: "serving" },
  failureFrom("recovering"),
  ...closeFrom("serving", "draining"),
  failureFrom("serving"),
  ...closeFrom("draining", "draining"),
  { from: "draining", on: "work.left" },
  { from: "draining", on: "work.joined", to: "closed", effects: ["refuseCalls"] },
  failureFrom("draining"),
  {
    from: "failed",
    on: "close",
    sets: (_, event) => ({ mode: event.mode }),
    effects: ["interruptTurns"],
  },
  { from: "failed", on: "work.left" },
  { from: "failed", on: "work.joined", to: "closed" },
  { from: "failed", on: "fail" },
];

export const supervisorRules: ChartRules<SupervisorContext, SupervisorEvent> = {
  machine: supervisorMachine,
  inputs: { "a supervisor": { supervisorId: "supervisor-1" } },
  initial: {
    state: "opening",
    context: (input: { readonly supervisorId: string }) => ({ ...input, mode: null, reason: null }),
  },
  finals: ["closed"],
  events: supervisorEvents,
  project: (context) => context,
  rows,
  accepts: `
            store.opened store.verified sessions.recovered close work.left work.joined fail
opening     +            .              .                  .     .         .           +
verifying   .            +              .                  .     .         .           +
recovering  .            .              +                  .     .         .           +
serving     .            .              .                  +     .         .           +
draining    .            .              .                  +     +         +           +
failed      .            .              .                  +     +         +           +
closed      .            .              .                  .     .         .           .
`,
  invariants: [
    {
      title: "what failed has a reason, and only what failed or closed after that has one",
      holds: (state, { reason }) =>
        state === "failed" ? reason !== null : state === "closed" || reason === null,
    },
    {
      title: "a close that was asked for is known by its mode",
      holds: (state, { mode }) =>
        state === "draining"
          ? mode !== null
          : ["failed", "closed"].includes(state) || mode === null,
    },
    {
      title: "what closed was asked to, or had failed",
      holds: (state, { mode, reason }) => state !== "closed" || mode !== null || reason !== null,
    },
  ],
  moves: [
    {
      title: "the first cause of a failure stays",
      holds: (before, after) => before.reason === null || before.reason === after.reason,
    },
    {
      title: "a close is never taken back",
      holds: (before, after) => before.mode === null || after.mode !== null,
    },
    {
      title: "the identity never changes",
      holds: (before, after) => before.supervisorId === after.supervisorId,
    },
  ],
};
