/**
 * A durable actor: a chart at a committed snapshot. It is moved by publishing a plan, and in no
 * other way. The XState actor behind it is made when somebody looks, so that an actor that nobody
 * watches costs its snapshot and no more.
 */
import {
  type AdoptingActor,
  type AnyStateMachine,
  adoptingActor,
  contextOf,
  type EventFromLogic,
  type InspectionEvent,
  type LiveActor,
  type SnapshotFrom,
  stateName,
} from "./xstate.js";

/** What happens around the actors of one supervisor. */
export interface ActorWatch {
  /** An event was sent to a live actor from outside; it changed nothing. */
  onForeignEvent(actorId: string, eventType: string): void;
  /** Receives XState's own inspection events. With it every actor is live from the start. */
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
}

export class DurableActor<M extends AnyStateMachine> {
  readonly id: string;
  readonly machine: M;
  readonly #watch: ActorWatch;
  #snapshot: SnapshotFrom<M>;
  #live: AdoptingActor<M> | undefined;

  constructor(options: {
    readonly id: string;
    readonly machine: M;
    readonly snapshot: SnapshotFrom<M>;
    readonly watch: ActorWatch;
  }) {
    this.id = options.id;
    this.machine = options.machine;
    this.#snapshot = options.snapshot;
    this.#watch = options.watch;
  }

  /** The last committed snapshot. */
  get snapshot(): SnapshotFrom<M> {
    return this.#snapshot;
  }

  get context(): SnapshotFrom<M>["context"] {
    return contextOf<M>(this.#snapshot);
  }

  get state(): string {
    return stateName(this.#snapshot);
  }

  /** The live XState actor: for `getSnapshot`, `subscribe` and inspectors. Sending to it is refused. */
  get ref(): LiveActor<M> {
    return this.#makeLive().ref;
  }

  /** Adopts a committed snapshot. Only `publish` of the unit of work calls this. */
  adopt(event: EventFromLogic<M>, snapshot: SnapshotFrom<M>): void {
    if (this.#watch.inspect !== undefined) this.#makeLive();
    this.#snapshot = snapshot;
    this.#live?.adopt(event, snapshot);
  }

  /** Ends the live actor, if there is one: its observers see it stop. */
  stop(): void {
    this.#live?.stop();
    this.#live = undefined;
  }

  #makeLive(): AdoptingActor<M> {
    this.#live ??= adoptingActor({
      machine: this.machine,
      id: this.id,
      snapshot: this.#snapshot,
      onForeignEvent: (event) => this.#watch.onForeignEvent(this.id, event.type),
      inspect: this.#watch.inspect,
    });
    return this.#live;
  }
}
