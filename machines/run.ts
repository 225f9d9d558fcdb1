/**
 * The run chart governs one execution of a workflow: what of it is in progress, what is durable
 * already, where it goes next, and how it ends. A run moves in groups of nodes that are joined at
 * one barrier; a group of one is the rule. `staging`, `barrier` and `routing` are what a driver
 * moves on by itself; `parked` and `waiting` stand still until somebody outside acts or a time
 * comes. What nodes compute, and the state they write, are not its matter.
 */
import { assign, setup } from "xstate";

export type NodeKind = "state" | "input" | "action" | "turn" | "wait";

/** Names one execution of a workflow. */
export interface RunScope {
  readonly workspaceId: string;
  readonly workflowId: string;
  readonly runId: string;
  readonly occurrence: string;
}

/** A node of the group in progress. */
export interface ActiveNode {
  readonly id: string;
  readonly kind: NodeKind;
  /** The checkpoint that entered it. With the node it names this visit. */
  readonly sequence: number;
  /** Numbers the questions of a run, from 1; null for what asks nothing. */
  readonly generation: number | null;
  /** Tries that failed. */
  readonly attempts: number;
  /** When it goes on by itself, in epoch milliseconds: the end of a wait, or the next try. */
  readonly dueMs: number | null;
  /** When it fails with a timeout, in epoch milliseconds. */
  readonly deadlineMs: number | null;
  readonly progress: "open" | "staged" | "failed";
}

/** A node as it is entered. */
export interface NodeEntry {
  readonly id: string;
  readonly kind: NodeKind;
  readonly dueMs: number | null;
  readonly deadlineMs: number | null;
}

/** What the next route starts from. */
export type RouteOrigin =
  | { readonly type: "node"; readonly node: string; readonly hasFailed: boolean }
  /** The node whose route opened the group that was joined. */
  | { readonly type: "group"; readonly openedBy: string };

export interface RunFailure {
  readonly kind: "timeout" | "child" | "execution";
  readonly message: string;
  readonly node: string | null;
}

export interface RunContext extends RunScope {
  /** Number of the last committed barrier; null before the first. */
  readonly lastActionOrdinal: number | null;
  /** Questions asked so far. */
  readonly questions: number;
  readonly group: readonly ActiveNode[];
  readonly groupOpenedBy: string | null;
  /** Nodes of the group that may work at the same time. */
  readonly maxParallel: number;
  /** Null at the entry of the workflow. */
  readonly origin: RouteOrigin | null;
  readonly failure: RunFailure | null;
  readonly outcome: "succeeded" | "failed" | "cancelled" | null;
}

export interface RunInput extends RunScope {
  readonly lastActionOrdinal?: number | null;
  readonly origin?: RouteOrigin | null;
}

export type RunEvent =
  | {
      readonly type: "enter";
      readonly sequence: number;
      readonly nodes: readonly NodeEntry[];
      readonly openedBy: string | null;
      readonly maxParallel: number;
    }
  | { readonly type: "stage"; readonly node: string; readonly hasFailed: boolean }
  | { readonly type: "restage"; readonly node: string; readonly hasFailed: boolean }
  | { readonly type: "retry"; readonly node: string; readonly dueMs: number }
  | { readonly type: "join" }
  | { readonly type: "succeed" }
  | { readonly type: "fail"; readonly failure: RunFailure }
  | { readonly type: "cancel" }
  | { readonly type: "cancelled" }
  | { readonly type: "retain" };

const WORKING: readonly NodeKind[] = ["state", "action", "turn"];

function works({ kind }: { readonly kind: NodeKind }): boolean {
  return WORKING.includes(kind);
}

function isOpen({ progress }: ActiveNode): boolean {
  return progress === "open";
}

/** What of the group is still open besides the node of the event. */
function othersOpen(context: RunContext, event: RunEvent): readonly ActiveNode[] {
  return context.group.filter(
    (node) => isOpen(node) && !("node" in event && node.id === event.node),
  );
}

function stagesOpenNode(context: RunContext, event: RunEvent): boolean {
  return (
    event.type === "stage" && context.group.some((node) => isOpen(node) && node.id === event.node)
  );
}

export const runMachine = setup({
  types: {
    context: {} as RunContext,
    events: {} as RunEvent,
    input: {} as RunInput,
  },
  guards: {
    entersWork: ({ event }) => event.type === "enter" && event.nodes.some(works),
    entersOnlyWaits: ({ event }) =>
      event.type === "enter" && event.nodes.length > 0 && !event.nodes.some(works),
    stagesLast: ({ context, event }) =>
      stagesOpenNode(context, event) && othersOpen(context, event).length === 0,
    stagesLastWork: ({ context, event }) =>
      stagesOpenNode(context, event) && !othersOpen(context, event).some(works),
    stagesOne: ({ context, event }) => stagesOpenNode(context, event),
    recomputes: ({ context, event }) =>
      event.type === "restage" &&
      context.group.some(
        (node) => node.id === event.node && node.kind === "state" && !isOpen(node),
      ),
    retriesWork: ({ context, event }) =>
      event.type === "retry" &&
      context.group.some((node) => node.id === event.node && isOpen(node) && works(node)),
  },
  actions: {
    openGroup: assign(({ context, event }) => {
      if (event.type !== "enter") return {};
      let { questions } = context;
      const group = event.nodes.map((entry): ActiveNode => {
        if (entry.kind === "input") questions += 1;
        const generation = entry.kind === "input" ? questions : null;
        const { sequence } = event;
        return { ...entry, sequence, generation, attempts: 0, progress: "open" };
      });
      const { openedBy, maxParallel } = event;
      return { group, questions, groupOpenedBy: openedBy, maxParallel, origin: null };
    }),
    noteStaged: assign(({ context, event }) =>
      event.type === "stage" || event.type === "restage"
        ? {
            group: context.group.map(
              (node): ActiveNode =>
                node.id === event.node
                  ? { ...node, dueMs: null, progress: event.hasFailed ? "failed" : "staged" }
                  : node,
            ),
          }
        : {},
    ),
    noteRetry: assign(({ context, event }) =>
      event.type === "retry"
        ? {
            group: context.group.map((node) =>
              node.id === event.node
                ? { ...node, attempts: node.attempts + 1, dueMs: event.dueMs }
                : node,
            ),
          }
        : {},
    ),
    closeGroup: assign(({ context }) => {
      const [only] = context.group;
      const origin: RouteOrigin | null =
        context.groupOpenedBy !== null
          ? { type: "group", openedBy: context.groupOpenedBy }
          : only === undefined
            ? null
            : { type: "node", node: only.id, hasFailed: only.progress === "failed" };
      return {
        origin,
        group: [],
        groupOpenedBy: null,
        maxParallel: 1,
        lastActionOrdinal: (context.lastActionOrdinal ?? -1) + 1,
      };
    }),
    dropGroup: assign({ group: [], groupOpenedBy: null, maxParallel: 1, origin: null }),
    noteFailure: assign(({ event }) => (event.type === "fail" ? { failure: event.failure } : {})),
    noteOutcome: assign(
      (_, params: { readonly outcome: "succeeded" | "failed" | "cancelled" }) => params,
    ),
    /** Effect: what nodes are doing is cut off. */
    abortSteps: () => {},
    /** Effect: who waits for the run to stand still hears that it does. */
    tellSettled: () => {},
    /** Effect: the capacity that the run occupies is given back. */
    releaseCapacity: () => {},
  },
}).createMachine({
  id: "run",
  version: "1",
  initial: "parked",
  context: ({ input }) => ({
    workspaceId: input.workspaceId,
    workflowId: input.workflowId,
    runId: input.runId,
    occurrence: input.occurrence,
    lastActionOrdinal: input.lastActionOrdinal ?? null,
    questions: 0,
    group: [],
    groupOpenedBy: null,
    maxParallel: 1,
    origin: input.origin ?? null,
    failure: null,
    outcome: null,
  }),
  states: {
    parked: {
      description: "Prepared. It moves when somebody asks for its execution.",
      on: {
        enter: [
          {
            guard: "entersWork",
            target: "staging",
            actions: "openGroup",
            description: "The first nodes begin their work.",
          },
          {
            guard: "entersOnlyWaits",
            target: "waiting",
            actions: ["openGroup", "tellSettled"],
            description: "The first nodes wait for an answer or a time.",
          },
        ],
        succeed: {
          target: "succeeded",
          actions: [
            "dropGroup",
            { type: "noteOutcome", params: { outcome: "succeeded" } },
            "tellSettled",
            "releaseCapacity",
          ],
          description: "A fork of a run that had nothing more to do.",
        },
        fail: {
          target: "failed",
          actions: [
            "dropGroup",
            "noteFailure",
            { type: "noteOutcome", params: { outcome: "failed" } },
            "tellSettled",
            "releaseCapacity",
          ],
          description: "There is no way from where it was prepared.",
        },
        cancel: {
          target: "cancelling",
          actions: "dropGroup",
          description: "It was not wanted after all.",
        },
      },
    },
    staging: {
      description: "At least one node works; what is done is durable, node by node.",
      on: {
        stage: [
          {
            guard: "stagesLast",
            target: "barrier",
            actions: "noteStaged",
            description: "The last node of the group is done.",
          },
          {
            guard: "stagesLastWork",
            target: "waiting",
            actions: ["noteStaged", "tellSettled"],
            description: "What is left of the group waits for the outside.",
          },
          {
            guard: "stagesOne",
            actions: "noteStaged",
            description: "One node is done, others work on.",
          },
        ],
        restage: {
          guard: "recomputes",
          actions: "noteStaged",
          description: "A result that was computed before a restart is computed again.",
        },
        retry: {
          guard: "retriesWork",
          actions: "noteRetry",
          description: "A try failed; the next one has its time.",
        },
        fail: {
          target: "failed",
          actions: [
            "dropGroup",
            "noteFailure",
            { type: "noteOutcome", params: { outcome: "failed" } },
            "abortSteps",
            "tellSettled",
            "releaseCapacity",
          ],
          description: "A node failed and nothing takes its failure up.",
        },
        cancel: {
          target: "cancelling",
          actions: ["dropGroup", "abortSteps"],
          description: "Cancelled while nodes work.",
        },
      },
    },
    waiting: {
      description: "Every open node waits for an answer or a time.",
      on: {
        stage: [
          {
            guard: "stagesLast",
            target: "barrier",
            actions: "noteStaged",
            description: "The last answer or time of the group has come.",
          },
          {
            guard: "stagesOne",
            actions: ["noteStaged", "tellSettled"],
            description: "One has come, others are awaited.",
          },
        ],
        restage: {
          guard: "recomputes",
          actions: "noteStaged",
          description: "A result that was computed before a restart is computed again.",
        },
        fail: {
          target: "failed",
          actions: [
            "dropGroup",
            "noteFailure",
            { type: "noteOutcome", params: { outcome: "failed" } },
            "abortSteps",
            "tellSettled",
            "releaseCapacity",
          ],
          description: "A node failed and nothing takes its failure up.",
        },
        cancel: {
          target: "cancelling",
          actions: ["dropGroup", "abortSteps"],
          description: "Cancelled while it waits.",
        },
      },
    },
    barrier: {
      description: "All nodes of the group are done; their results are durable, not yet applied.",
      on: {
        restage: {
          guard: "recomputes",
          actions: "noteStaged",
          description: "A result that was computed before a restart is computed again.",
        },
        join: {
          target: "routing",
          actions: "closeGroup",
          description: "The results are applied to the state, all at once.",
        },
        fail: {
          target: "failed",
          actions: [
            "dropGroup",
            "noteFailure",
            { type: "noteOutcome", params: { outcome: "failed" } },
            "tellSettled",
            "releaseCapacity",
          ],
          description: "The results cannot be combined.",
        },
        cancel: {
          target: "cancelling",
          actions: "dropGroup",
          description: "Cancelled before the results were applied.",
        },
      },
    },
    routing: {
      description: "A barrier is behind it; where it goes next is not chosen yet.",
      on: {
        enter: [
          {
            guard: "entersWork",
            target: "staging",
            actions: "openGroup",
            description: "The next nodes begin their work.",
          },
          {
            guard: "entersOnlyWaits",
            target: "waiting",
            actions: ["openGroup", "tellSettled"],
            description: "The next nodes wait for an answer or a time.",
          },
        ],
        succeed: {
          target: "succeeded",
          actions: [
            "dropGroup",
            { type: "noteOutcome", params: { outcome: "succeeded" } },
            "tellSettled",
            "releaseCapacity",
          ],
          description: "Nothing follows.",
        },
        fail: {
          target: "failed",
          actions: [
            "dropGroup",
            "noteFailure",
            { type: "noteOutcome", params: { outcome: "failed" } },
            "tellSettled",
            "releaseCapacity",
          ],
          description: "No way leads on.",
        },
        cancel: {
          target: "cancelling",
          actions: "dropGroup",
          description: "Cancelled between two groups.",
        },
      },
    },
    cancelling: {
      description: "The wish to cancel is durable; what was in progress is being let go.",
      on: {
        cancelled: {
          target: "cancelled",
          actions: [
            { type: "noteOutcome", params: { outcome: "cancelled" } },
            "tellSettled",
            "releaseCapacity",
          ],
          description: "Nothing of it is in progress any more.",
        },
      },
    },
    succeeded: {
      description: "Done. It still occupies capacity.",
      on: {
        retain: { target: "retained", description: "The capacity is given back." },
      },
    },
    failed: {
      description: "Ended by a failure. It still occupies capacity.",
      on: {
        retain: { target: "retained", description: "The capacity is given back." },
      },
    },
    cancelled: {
      description: "Ended on request. It still occupies capacity.",
      on: {
        retain: { target: "retained", description: "The capacity is given back." },
      },
    },
    retained: {
      type: "final",
      description: "Kept for looking back until it is deleted.",
    },
  },
});
