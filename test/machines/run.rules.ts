/** What the run chart must do: section 5 of the workflows specification, row by row. */
import {
  type ActiveNode,
  type NodeKind,
  type RunContext,
  type RunEvent,
  type RunInput,
  runMachine,
} from "../../machines/index.js";
import type { ChartRules, Row } from "./chart-rules.js";

type RunRow = Row<RunContext, RunEvent>;
type Enter = Extract<RunEvent, { type: "enter" }>;
type Staging = Extract<RunEvent, { type: "stage" | "restage" }>;

const scope = { workspaceId: "w", workflowId: "f", runId: "r", occurrence: "o" };
const ends = ["succeeded", "failed", "cancelled"];
const working = new Set<NodeKind>(["state", "action", "turn"]);
const failure = { kind: "execution", message: "exit 1", node: "act" } as const;
const sequence = 7;

const entry = (id: string, kind: NodeKind) => ({ id, kind, dueMs: null, deadlineMs: 9_000 });
const enter = (nodes: readonly ReturnType<typeof entry>[], openedBy: string | null): RunEvent => ({
  type: "enter",
  sequence,
  nodes,
  openedBy,
  maxParallel: openedBy === null ? 1 : 2,
});

/** Groups of work, of waiting, of both and of nothing; stagings of each node and of one that is not there. */
function runEvents(): readonly RunEvent[] {
  const ids = ["act", "compute", "ask", "pause", "nobody"];
  return [
    enter([entry("act", "action")], null),
    enter([entry("compute", "state")], null),
    enter([entry("ask", "input")], null),
    enter([entry("act", "turn"), entry("compute", "state"), entry("ask", "wait")], "fan"),
    enter([entry("ask", "input"), entry("pause", "wait")], "fan"),
    enter([], null),
    ...ids.flatMap((node): readonly RunEvent[] => [
      { type: "stage", node, hasFailed: false },
      { type: "stage", node, hasFailed: true },
      { type: "restage", node, hasFailed: true },
      { type: "retry", node, dueMs: 5_000 },
    ]),
    { type: "join" },
    { type: "succeed" },
    { type: "fail", failure },
    { type: "cancel" },
    { type: "cancelled" },
    { type: "retain" },
  ];
}

const opened = (event: Enter) => event.nodes.some(({ kind }) => working.has(kind));
const nodeOf = ({ group }: RunContext, { node }: { readonly node: string }) =>
  group.find(({ id }) => id === node);
const isOpen = (node: ActiveNode | undefined) => node?.progress === "open";
/** What is open when the event has happened. */
const leftOpen = ({ group }: RunContext, { node }: { readonly node: string }) =>
  group.filter((other) => other.progress === "open" && other.id !== node);
const leavesWork = (context: RunContext, event: { readonly node: string }) =>
  leftOpen(context, event).some(({ kind }) => working.has(kind));

const noGroup = { group: [], groupOpenedBy: null, maxParallel: 1, origin: null };

const openGroup = (
  context: RunContext,
  { nodes, openedBy, maxParallel }: Enter,
): Partial<RunContext> => {
  let generation = context.questions;
  const group = nodes.map((node): ActiveNode => {
    if (node.kind === "input") generation += 1;
    return {
      ...node,
      sequence,
      generation: node.kind === "input" ? generation : null,
      attempts: 0,
      progress: "open",
    };
  });
  return { group, questions: generation, groupOpenedBy: openedBy, maxParallel, origin: null };
};

const stageNode = (context: RunContext, event: Staging): Partial<RunContext> => ({
  group: context.group.map((node) => {
    if (node.id !== event.node) return node;
    return { ...node, dueMs: null, progress: event.hasFailed ? "failed" : "staged" };
  }),
});

const entering = (from: string): readonly RunRow[] => [
  {
    from,
    on: "enter",
    when: "a node works",
    if: (_, event) => opened(event),
    to: "staging",
    sets: openGroup,
  },
  {
    from,
    on: "enter",
    when: "all nodes wait",
    if: (_, event) => event.nodes.length > 0 && !opened(event),
    to: "waiting",
    sets: openGroup,
    effects: ["tellSettled"],
  },
  {
    from,
    on: "succeed",
    to: "succeeded",
    sets: () => ({ ...noGroup, outcome: "succeeded" }),
    effects: ["tellSettled", "releaseCapacity"],
  },
];

const failing = (from: string, before: readonly string[]): RunRow => ({
  from,
  on: "fail",
  to: "failed",
  sets: () => ({ ...noGroup, failure, outcome: "failed" }),
  effects: [...before, "tellSettled", "releaseCapacity"],
});

const cancelling = (from: string, effects: readonly string[]): RunRow => ({
  from,
  on: "cancel",
  to: "cancelling",
  sets: () => noGroup,
  effects,
});

const restaging = (from: string): RunRow => ({
  from,
  on: "restage",
  when: "it is a state node that was done",
  if: (context, event) => {
    const node = nodeOf(context, event);
    return node?.kind === "state" && !isOpen(node);
  },
  sets: stageNode,
});

const finishing = (from: string): RunRow => ({
  from,
  on: "stage",
  when: "it is the last that was open",
  if: (context, event) => isOpen(nodeOf(context, event)) && leftOpen(context, event).length === 0,
  to: "barrier",
  sets: stageNode,
});

const rows: readonly RunRow[] = [
  ...entering("parked"),
  failing("parked", []),
  cancelling("parked", []),
  finishing("staging"),
  {
    from: "staging",
    on: "stage",
    when: "only nodes that wait are left",
    if: (context, event) =>
      isOpen(nodeOf(context, event)) &&
      leftOpen(context, event).length > 0 &&
      !leavesWork(context, event),
    to: "waiting",
    sets: stageNode,
    effects: ["tellSettled"],
  },
  {
    from: "staging",
    on: "stage",
    when: "others work on",
    if: (context, event) => isOpen(nodeOf(context, event)) && leavesWork(context, event),
    sets: stageNode,
  },
  restaging("staging"),
  {
    from: "staging",
    on: "retry",
    when: "it works and is not done",
    if: (context, event) => {
      const node = nodeOf(context, event);
      return node !== undefined && isOpen(node) && working.has(node.kind);
    },
    sets: (context, event) => ({
      group: context.group.map((node) =>
        node.id === event.node
          ? { ...node, attempts: node.attempts + 1, dueMs: event.dueMs }
          : node,
      ),
    }),
  },
  failing("staging", ["abortSteps"]),
  cancelling("staging", ["abortSteps"]),
  finishing("waiting"),
  {
    from: "waiting",
    on: "stage",
    when: "others are awaited",
    if: (context, event) => isOpen(nodeOf(context, event)) && leftOpen(context, event).length > 0,
    sets: stageNode,
    effects: ["tellSettled"],
  },
  restaging("waiting"),
  failing("waiting", ["abortSteps"]),
  cancelling("waiting", ["abortSteps"]),
  restaging("barrier"),
  {
    from: "barrier",
    on: "join",
    to: "routing",
    sets: ({ group, groupOpenedBy, lastActionOrdinal }) => ({
      ...noGroup,
      origin:
        groupOpenedBy === null
          ? {
              type: "node",
              node: group[0]?.id ?? "",
              hasFailed: group[0]?.progress === "failed",
            }
          : { type: "group", openedBy: groupOpenedBy },
      lastActionOrdinal: lastActionOrdinal === null ? 0 : lastActionOrdinal + 1,
    }),
  },
  failing("barrier", []),
  cancelling("barrier", []),
  ...entering("routing"),
  failing("routing", []),
  cancelling("routing", []),
  {
    from: "cancelling",
    on: "cancelled",
    to: "cancelled",
    sets: () => ({ outcome: "cancelled" }),
    effects: ["tellSettled", "releaseCapacity"],
  },
  ...ends.map((from): RunRow => ({ from, on: "retain", to: "retained" })),
];

export const runRules: ChartRules<RunContext, RunEvent> = {
  machine: runMachine,
  inputs: {
    "a new run": scope,
    "a fork": {
      ...scope,
      lastActionOrdinal: 4,
      origin: { type: "node", node: "act", hasFailed: false },
    },
  },
  initial: {
    state: "parked",
    context: ({ lastActionOrdinal = null, origin = null }: RunInput) => ({
      ...scope,
      lastActionOrdinal,
      origin,
      questions: 0,
      group: [],
      groupOpenedBy: null,
      maxParallel: 1,
      failure: null,
      outcome: null,
    }),
  },
  finals: ["retained"],
  events: runEvents,
  project: ({ group, groupOpenedBy, origin, questions, lastActionOrdinal, outcome }) => ({
    group: group.map(({ id, kind, progress, attempts }) => [
      id,
      kind,
      progress,
      Math.min(attempts, 1),
    ]),
    groupOpenedBy,
    origin: origin?.type,
    questions: Math.min(questions, 1),
    hasBarrier: lastActionOrdinal !== null,
    outcome,
  }),
  rows,
  accepts: `
            enter stage restage retry join succeed fail cancel cancelled retain
parked      ?     .     .       .     .    +       +    +      .         .
staging     .     ?     ?       ?     .    .       +    +      .         .
waiting     .     ?     ?       .     .    .       +    +      .         .
barrier     .     .     ?       .     +    .       +    +      .         .
routing     ?     .     .       .     .    +       +    +      .         .
cancelling  .     .     .       .     .    .       .    .      +         .
succeeded   .     .     .       .     .    .       .    .      .         +
failed      .     .     .       .     .    .       .    .      .         +
cancelled   .     .     .       .     .    .       .    .      .         +
retained    .     .     .       .     .    .       .    .      .         .
`,
  invariants: [
    {
      title: "a group is in progress exactly while its nodes are staged, awaited or joined",
      holds: (state, { group }) =>
        group.length > 0 === ["staging", "waiting", "barrier"].includes(state),
    },
    {
      title: "staging has open work, waiting has none but waits, a barrier has nothing open",
      holds: (state, { group }) => {
        const open = group.filter(({ progress }) => progress === "open");
        const works = open.some(({ kind }) => working.has(kind));
        if (state === "staging") return works;
        if (state === "waiting") return open.length > 0 && !works;
        return open.length === 0;
      },
    },
    {
      title: "an outcome is there from the end on, and only a failed run has a failure",
      holds: (state, { outcome, failure: found }) =>
        (outcome !== null) === [...ends, "retained"].includes(state) &&
        (found !== null) === (outcome === "failed") &&
        (!ends.includes(state) || outcome === state),
    },
    {
      title: "after a barrier there is something to route from",
      holds: (state, { origin }) => state !== "routing" || origin !== null,
    },
    {
      title: "a question has a generation, and nothing else has",
      holds: (_, { group }) =>
        group.every(({ kind, generation }) => (generation !== null) === (kind === "input")),
    },
  ],
  moves: [
    {
      title: "which run it is never changes",
      holds: (before, after) =>
        before.workspaceId === after.workspaceId &&
        before.workflowId === after.workflowId &&
        before.runId === after.runId &&
        before.occurrence === after.occurrence,
    },
    {
      title: "barriers are counted one by one, and questions never fewer",
      holds: (before, after) =>
        [0, 1].includes((after.lastActionOrdinal ?? -1) - (before.lastActionOrdinal ?? -1)) &&
        after.questions >= before.questions,
    },
  ],
};
