/**
 * A plan: the next snapshots, rows and journal entries of one durable move, computed without
 * changing anything. Charts decide here and only here. A plan that is dropped leaves no trace.
 */
import { TransitionError } from "../errors.js";
import type { JsonValue, Key, OperationId, Revision } from "../store/port.js";
import type { DurableActor } from "./actor.js";
import {
  type AnyStateMachine,
  type ChartEffect,
  contextOf,
  type EventFromLogic,
  isFinal,
  type SnapshotFrom,
  stateName,
  step,
} from "./xstate.js";

/** One accepted event of one actor, as the journal keeps it. */
export interface Move {
  readonly actor: string;
  readonly from: string;
  readonly to: string;
  readonly event: JsonValue;
}

/** A named action that waits for the commit, with the actor that asked for it. */
export interface PlannedEffect extends ChartEffect {
  // biome-ignore lint/suspicious/noExplicitAny: a plan holds actors of every chart.
  readonly actor: DurableActor<any>;
}

export type Row =
  | {
      readonly type: "put";
      readonly key: Key;
      readonly value: JsonValue;
      readonly expect?: Revision | "absent";
    }
  | { readonly type: "delete"; readonly key: Key };

export class Plan {
  readonly operation: OperationId;
  readonly atMs: number;
  readonly moves: Move[] = [];
  readonly effects: PlannedEffect[] = [];
  readonly rows: Row[] = [];
  readonly #next = new Map<DurableActor<AnyStateMachine>, unknown>();
  readonly #adoptions: (() => void)[] = [];
  readonly #publications: (() => void)[] = [];

  constructor(options: { readonly operation: OperationId; readonly atMs: number }) {
    this.operation = options.operation;
    this.atMs = options.atMs;
  }

  /**
   * Steps an actor within this plan.
   * @throws TransitionError the chart does not accept the event; the plan is to be dropped
   */
  move<M extends AnyStateMachine>(actor: DurableActor<M>, event: EventFromLogic<M>): void {
    const from = this.snapshot(actor);
    const taken = step(actor.machine, from, event);
    if (!taken.accepted) {
      throw new TransitionError(actor.id, stateName(from), event.type, taken.reason);
    }
    this.#next.set(actor as never, taken.snapshot);
    for (const effect of taken.effects) this.effects.push({ ...effect, actor });
    this.moves.push({
      actor: actor.id,
      from: stateName(from),
      to: stateName(taken.snapshot),
      event: event as unknown as JsonValue,
    });
    this.#adoptions.push(() => actor.adopt(event, taken.snapshot));
  }

  /** The actor's snapshot as this plan leaves it. */
  snapshot<M extends AnyStateMachine>(actor: DurableActor<M>): SnapshotFrom<M> {
    return (this.#next.get(actor as never) ?? actor.snapshot) as SnapshotFrom<M>;
  }

  context<M extends AnyStateMachine>(actor: DurableActor<M>): SnapshotFrom<M>["context"] {
    return contextOf<M>(this.snapshot(actor));
  }

  state(actor: DurableActor<AnyStateMachine>): string {
    return stateName(this.snapshot(actor));
  }

  isFinal(actor: DurableActor<AnyStateMachine>): boolean {
    return isFinal(this.snapshot(actor));
  }

  hasMoved(actor: DurableActor<AnyStateMachine>): boolean {
    return this.#next.has(actor);
  }

  put(key: Key, value: JsonValue): void {
    this.rows.push({ type: "put", key, value });
  }

  delete(key: Key): void {
    this.rows.push({ type: "delete", key });
  }

  /** Runs after the actors have adopted, before the effects. Must not throw. */
  onPublish(task: () => void): void {
    this.#publications.push(task);
  }

  /** Called by the unit of work once the commit is durable. */
  publish(run: (effect: PlannedEffect) => void): void {
    for (const adopt of this.#adoptions) adopt();
    for (const task of this.#publications) task();
    for (const effect of this.effects) run(effect);
  }
}
