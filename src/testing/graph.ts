/**
 * The adapter to `@xstate/graph`, and the only file that imports it. It walks a chart breadth
 * first over states that are told apart by a key, and it gives every event that it is handed to
 * every state: what a state refuses is as much a finding as what it takes.
 */
import { type AdjacencyValue, getAdjacencyMap } from "@xstate/graph";
import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from "xstate";
import { ValidationError } from "../errors.js";
import { initialSnapshot } from "../kernel/xstate.js";

/** What one event made of a state. */
export interface GraphStep {
  readonly event: EventObject;
  readonly next: AnyMachineSnapshot;
  readonly nextKey: string;
}

/** A state, as first reached, and its steps in the order of its events. */
export interface GraphNode {
  readonly snapshot: AnyMachineSnapshot;
  readonly steps: readonly GraphStep[];
}

export interface GraphOptions {
  readonly input: unknown;
  readonly events: (snapshot: AnyMachineSnapshot) => readonly EventObject[];
  /** Two snapshots with one key count as one state; the first to be reached stands for it. */
  readonly keyOf: (snapshot: AnyMachineSnapshot) => string;
  /** Steps after which the walk gives up. */
  readonly stepsMax: number;
}

/**
 * All states that can be reached from the initial one, by key, in breadth-first order.
 * @throws ValidationError the walk did not end within `stepsMax` steps
 */
export function adjacency(
  machine: AnyStateMachine,
  options: GraphOptions,
): ReadonlyMap<string, GraphNode> {
  const fromState = initialSnapshot(machine, options.input);
  let steps = 0;
  const map = getAdjacencyMap<AnyMachineSnapshot, EventObject, unknown>(machine, {
    fromState,
    serializeState: options.keyOf,
    events: (snapshot) => {
      const events = options.events(snapshot);
      steps += events.length;
      if (steps > options.stepsMax) throw tooLarge(machine, options.stepsMax);
      return events;
    },
    limit: Number.POSITIVE_INFINITY,
  }) as Readonly<Record<string, AdjacencyValue<AnyMachineSnapshot, EventObject>>>;
  return new Map(
    Object.entries(map).map(([key, { state, transitions }]) => [
      key,
      {
        snapshot: state,
        steps: Object.values(transitions).map(({ event, state: next }) => ({
          event,
          next,
          nextKey: options.keyOf(next),
        })),
      },
    ]),
  );
}

function tooLarge(machine: AnyStateMachine, stepsMax: number): ValidationError {
  return new ValidationError(`exploration of machine ${machine.id}`, [
    {
      path: "/limit",
      found: `${stepsMax}, and the walk goes on after as many steps`,
      expected: "a projection of the context that takes few values, or a larger limit",
    },
  ]);
}
