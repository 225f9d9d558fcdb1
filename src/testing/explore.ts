/**
 * Explores a chart: every state it can be in, every transition it can take, the shortest way to
 * each, and every event that it refuses. It looks at the chart alone; whether a system behaves as
 * its chart says is for the suites that walk these paths.
 *
 * Transitions are counted by definition, so two guarded arms that lead to one target are told
 * apart. Eventless transitions (`always`) happen within a step and are not counted.
 */
import type {
  AnyMachineSnapshot,
  AnyStateMachine,
  AnyTransitionDefinition,
  ContextFrom,
  EventFromLogic,
  EventObject,
  InputFrom,
  SnapshotFrom,
  StateNode,
  StateValue,
} from "xstate";
import type { RefusalReason } from "../errors.js";
import { step } from "../kernel/xstate.js";
import { adjacency, type GraphStep } from "./graph.js";

export interface ExploreOptions<M extends AnyStateMachine> {
  readonly input: InputFrom<M>;
  /**
   * The events to try in a state: all types, and several payloads of a type where its guards or
   * assignments read them. None is left out because the state has no transition for it.
   */
  readonly events: (snapshot: SnapshotFrom<M>) => readonly EventFromLogic<M>[];
  /**
   * What of the context tells states apart, as JSON; by default all of it. It must keep whatever
   * guards read, and bound whatever counts up.
   */
  readonly project?: (context: ContextFrom<M>) => unknown;
  /** Steps, refused ones included, after which the exploration gives up. */
  readonly limit: number;
}

/** One transition as the chart defines it. */
export interface ChartArm {
  /** Names the arm within its chart: where it starts, on what, and which of the alternatives. */
  readonly id: string;
  readonly definition: AnyTransitionDefinition;
}

export interface ExploredState<M extends AnyStateMachine> {
  /** The leaf states it is in, by path: one, unless the chart has parallel parts. */
  readonly leaves: readonly string[];
  /** The snapshot that was reached first; others with the same projection are not kept. */
  readonly snapshot: SnapshotFrom<M>;
  /** A shortest sequence of events from the initial state to here. */
  readonly path: readonly EventFromLogic<M>[];
}

/** One event given to one state. */
export interface ExploredStep<M extends AnyStateMachine> {
  readonly from: ExploredState<M>;
  readonly event: EventFromLogic<M>;
  /** The transitions taken, one for each parallel part that took part; none when it was refused. */
  readonly arms: readonly ChartArm[];
  /** Why it was refused; null when it was taken. */
  readonly refusal: RefusalReason | null;
  /** The actions that the outside shall do, in their order. */
  readonly effects: readonly string[];
  /** The very snapshot that follows. A refused event leaves the same object. */
  readonly next: SnapshotFrom<M>;
  /** The explored state that stands for `next`. */
  readonly to: ExploredState<M>;
}

export interface Exploration<M extends AnyStateMachine> {
  readonly states: readonly ExploredState<M>[];
  /** Steps that the chart took. The shortest path over one is its `from.path` and its `event`. */
  readonly edges: readonly ExploredStep<M>[];
  /** Steps that the chart refused. */
  readonly refusals: readonly ExploredStep<M>[];
  /** Leaf states, by path: all that the chart defines, and those that were reached. */
  readonly definedStates: readonly string[];
  readonly reachedStates: ReadonlySet<string>;
  /** Transitions: all that the chart defines, and those that were taken. */
  readonly definedArms: readonly ChartArm[];
  readonly reachedArms: ReadonlySet<ChartArm>;
}

/**
 * Explores `machine` from its initial state.
 * @throws ValidationError the projection does not bound the chart within `limit` steps
 */
export function exploreMachine<M extends AnyStateMachine>(
  machine: M,
  options: ExploreOptions<M>,
): Exploration<M> {
  const project = options.project ?? ((context: ContextFrom<M>): unknown => context);
  const graph = adjacency(machine, {
    input: options.input,
    events: (snapshot) => options.events(snapshot as SnapshotFrom<M>) as readonly EventObject[],
    keyOf: ({ value, context }) => JSON.stringify([value, project(context)]),
    stepsMax: options.limit,
  });
  const arms = armsOf(machine);
  const states = new Map<string, ExploredState<M>>();
  const steps: ExploredStep<M>[] = [];

  function stateFor(key: string, path: readonly EventObject[]): ExploredState<M> {
    const known = states.get(key);
    if (known !== undefined) return known;
    const snapshot = graph.get(key)?.snapshot as AnyMachineSnapshot;
    const state = {
      leaves: leafPaths(snapshot.value),
      snapshot: snapshot as SnapshotFrom<M>,
      path: path as readonly EventFromLogic<M>[],
    };
    states.set(key, state);
    return state;
  }

  function stepFrom(from: ExploredState<M>, { event, next, nextKey }: GraphStep): ExploredStep<M> {
    const taken = step(machine, from.snapshot, event as EventFromLogic<M>);
    const chosen = machine.getTransitionData(from.snapshot as AnyMachineSnapshot, event);
    return {
      from,
      event: event as EventFromLogic<M>,
      arms: chosen.map((definition) => arms.get(definition) as ChartArm),
      refusal: taken.accepted ? null : taken.reason,
      effects: taken.accepted ? taken.effects.map((effect) => effect.type) : [],
      next: next as SnapshotFrom<M>,
      to: stateFor(nextKey, [...from.path, event]),
    };
  }

  // The graph lists its states breadth first, so the first path to a state is a shortest one.
  for (const [key, node] of graph) {
    const from = stateFor(key, []);
    for (const taken of node.steps) steps.push(stepFrom(from, taken));
  }
  const edges = steps.filter((taken) => taken.arms.length > 0);
  return {
    states: [...states.values()],
    edges,
    refusals: steps.filter((taken) => taken.arms.length === 0),
    definedStates: leavesOf(machine.root),
    reachedStates: new Set([...states.values()].flatMap((state) => state.leaves)),
    definedArms: [...arms.values()],
    reachedArms: new Set(edges.flatMap((edge) => edge.arms)),
  };
}

/** The leaf states of a state value, each as a path joined by dots. */
function leafPaths(value: StateValue, prefix = ""): readonly string[] {
  if (typeof value === "string") return [prefix + value];
  return Object.entries(value).flatMap(([key, inner]) => {
    const isLeaf = typeof inner === "object" && Object.keys(inner).length === 0;
    return inner === undefined || isLeaf ? [prefix + key] : leafPaths(inner, `${prefix}${key}.`);
  });
}

type AnyStateNode = StateNode;

function nodesOf(node: AnyStateNode): readonly AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap((child) => nodesOf(child as AnyStateNode))];
}

function leavesOf(root: AnyStateNode): readonly string[] {
  return nodesOf(root)
    .filter((node) => node.type === "atomic" || node.type === "final")
    .map((node) => node.path.join("."));
}

function armsOf(machine: AnyStateMachine): ReadonlyMap<AnyTransitionDefinition, ChartArm> {
  const arms = new Map<AnyTransitionDefinition, ChartArm>();
  for (const node of nodesOf(machine.root)) {
    for (const [event, definitions] of node.transitions) {
      definitions.forEach((definition, index) => {
        const start = `${node.path.join(".") || machine.id} ${event}`;
        const id = definitions.length > 1 ? `${start} (${index + 1})` : start;
        arms.set(definition, { id, definition });
      });
    }
  }
  return arms;
}
