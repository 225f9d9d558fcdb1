/** Sends events to a chart one after the other; each must be accepted. For tests that tell a story. */
import {
  type AnyStateMachine,
  type EventFromLogic,
  type InputFrom,
  initialTransition,
  type SnapshotFrom,
  transition,
} from "xstate";

/** The snapshots on the way, the initial one first, and the named actions of each event. */
export interface Walk<M extends AnyStateMachine> {
  readonly last: SnapshotFrom<M>;
  readonly effects: readonly (readonly string[])[];
}

export function walk<M extends AnyStateMachine>(
  machine: M,
  input: InputFrom<M>,
  events: readonly EventFromLogic<M>[],
): Walk<M> {
  const [initial] = initialTransition(machine, ...([input] as never));
  const effects: string[][] = [];
  let last: SnapshotFrom<M> = initial;
  for (const event of events) {
    if (machine.getTransitionData(last as never, event as never).length === 0) {
      throw new TypeError(`${JSON.stringify(event)} is refused in ${JSON.stringify(last)}`);
    }
    const [next, actions] = transition(machine, last, event);
    effects.push(actions.map((action) => action.type));
    last = next;
  }
  return { last, effects };
}
