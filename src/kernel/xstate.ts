/**
 * The adapter to XState, and the only file of the running system that imports it. It steps charts
 * purely, tells refusals apart, turns snapshots into stored JSON and back, and makes the live
 * actors that only adopt what was committed.
 */
import {
  type ActorLogic,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventFromLogic,
  type EventObject,
  fromTransition,
  type InputFrom,
  type InspectionEvent,
  type Observer,
  type SnapshotFrom,
} from "xstate";
import type { RefusalReason } from "../errors.js";
import type { JsonValue } from "../store/port.js";

export type { AnyStateMachine, EventFromLogic, InputFrom, InspectionEvent, SnapshotFrom };

/** A snapshot as it is stored: nothing but JSON. */
export interface StoredSnapshot {
  readonly value: JsonValue;
  readonly context: JsonValue;
}

/** A named action of a chart that the outside shall do once the step is durable. */
export interface ChartEffect {
  readonly type: string;
  readonly params: unknown;
}

/** What one event does to a snapshot: a next one with its effects, or a refusal. */
export type Step<M extends AnyStateMachine> =
  | {
      readonly accepted: true;
      readonly snapshot: SnapshotFrom<M>;
      readonly effects: readonly ChartEffect[];
    }
  | { readonly accepted: false; readonly reason: RefusalReason };

/** One reused scope: `transition()` of XState builds an actor for every call, which costs six times the step. */
const scope = ((): AnyActorScope => {
  const self = createActor(fromTransition((state: null) => state, null));
  return {
    self,
    system: self.system,
    id: self.id,
    sessionId: self.sessionId,
    logger: () => {},
    defer: () => {},
    stopChild: () => {},
    emit: () => {},
    actionExecutor: () => {},
  } as unknown as AnyActorScope;
})();

/** Runs `work` and collects the named actions that it asks for. */
function collecting<T>(work: () => T): { readonly result: T; readonly effects: ChartEffect[] } {
  const effects: ChartEffect[] = [];
  scope.actionExecutor = (action) => {
    effects.push({ type: action.type, params: action.params });
  };
  try {
    return { result: work(), effects };
  } finally {
    scope.actionExecutor = () => {};
  }
}

/** The first snapshot of a chart. Pure. */
export function initialSnapshot<M extends AnyStateMachine>(
  machine: M,
  input: InputFrom<M>,
): SnapshotFrom<M> {
  return collecting(() => machine.getInitialSnapshot(scope, input) as SnapshotFrom<M>).result;
}

/** One step of a chart. Pure: the given snapshot stays as it is, no action runs. */
export function step<M extends AnyStateMachine>(
  machine: M,
  snapshot: SnapshotFrom<M>,
  event: EventFromLogic<M>,
): Step<M> {
  const before = snapshot as AnyMachineSnapshot;
  const { result, effects } = collecting(() => machine.transition(before, event, scope));
  // XState answers with the very same object when no transition was taken.
  if (result === before && effects.length === 0 && !isIgnoredOnPurpose(machine, before, event)) {
    return { accepted: false, reason: refusalReason(before, event) };
  }
  return { accepted: true, snapshot: result as SnapshotFrom<M>, effects };
}

/** A chart may take an event and change nothing; then a transition without target is defined for it. */
function isIgnoredOnPurpose(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  event: EventObject,
): boolean {
  return (
    snapshot.status === "active" &&
    machine.getTransitionData(snapshot as never, event as never).length > 0
  );
}

function refusalReason(snapshot: AnyMachineSnapshot, event: EventObject): RefusalReason {
  if (snapshot.status !== "active") return "terminalState";
  const isKnown = snapshot._nodes.some((node) => node.ownEvents.includes(event.type as never));
  return isKnown ? "guardFailed" : "illegalTransition";
}

/** The state of a snapshot as text, for messages and records. */
export function stateName(snapshot: unknown): string {
  const { value } = snapshot as AnyMachineSnapshot;
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function isFinal(snapshot: unknown): boolean {
  return (snapshot as AnyMachineSnapshot).status !== "active";
}

export function contextOf<M extends AnyStateMachine>(
  snapshot: SnapshotFrom<M>,
): SnapshotFrom<M>["context"] {
  return (snapshot as AnyMachineSnapshot).context;
}

export function encodeSnapshot(snapshot: unknown): StoredSnapshot {
  const { value, context } = snapshot as AnyMachineSnapshot;
  return { value: value as JsonValue, context: context as JsonValue };
}

/**
 * The snapshot that was stored. The caller has checked that the state exists in the chart.
 * @throws Error of XState when the state is not one of the chart
 */
export function restoreSnapshot<M extends AnyStateMachine>(
  machine: M,
  stored: StoredSnapshot,
): SnapshotFrom<M> {
  return machine.resolveState({
    value: stored.value as never,
    context: stored.context as never,
  }) as SnapshotFrom<M>;
}

export function hasState(machine: AnyStateMachine, value: unknown): boolean {
  return typeof value === "string" && Object.hasOwn(machine.root.states, value);
}

const adopted = Symbol("holdfast.adopted");

/** What the outside may do with a live actor: look, and subscribe. */
export interface LiveActor<M extends AnyStateMachine> {
  readonly id: string;
  readonly sessionId: string;
  getSnapshot(): SnapshotFrom<M>;
  subscribe(observer: Observer<SnapshotFrom<M>>): { unsubscribe(): void };
  send(event: EventFromLogic<M>): void;
}

/** A live actor and the one way to move it. */
export interface AdoptingActor<M extends AnyStateMachine> {
  readonly ref: LiveActor<M>;
  /** Makes a committed snapshot the actor's own; observers see the event that led to it. */
  adopt(event: EventFromLogic<M>, snapshot: SnapshotFrom<M>): void;
  stop(): void;
}

/**
 * A real XState actor at `snapshot` whose logic only adopts. An event that reaches it in any other
 * way is given to `onForeignEvent` and changes nothing.
 */
export function adoptingActor<M extends AnyStateMachine>(options: {
  readonly machine: M;
  readonly id: string;
  readonly snapshot: SnapshotFrom<M>;
  readonly onForeignEvent: (event: EventObject) => void;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
}): AdoptingActor<M> {
  const logic = {
    config: options.machine.config,
    transition: (current: AnyMachineSnapshot, event: EventObject) => {
      if (adopted in event) return event[adopted] as AnyMachineSnapshot;
      options.onForeignEvent(event);
      return current;
    },
    getInitialSnapshot: () => options.snapshot as AnyMachineSnapshot,
    getPersistedSnapshot: (current: AnyMachineSnapshot) =>
      options.machine.getPersistedSnapshot(current as never),
    // biome-ignore lint/suspicious/noExplicitAny: XState's logic type is invariant in five parameters.
  } as unknown as ActorLogic<any, any>;
  const actor = createActor(logic, {
    id: options.id,
    ...(options.inspect === undefined ? {} : { inspect: options.inspect }),
  });
  actor.start();
  return {
    ref: actor as unknown as LiveActor<M>,
    adopt: (event, snapshot) => actor.send({ ...event, [adopted]: snapshot }),
    stop: () => {
      actor.stop();
    },
  };
}
