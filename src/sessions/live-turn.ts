/** The turn in progress of a session, as it is held in memory. */
import { type TurnInput, turnMachine } from "../../machines/turn.js";
import { type ActorWatch, DurableActor } from "../kernel/actor.js";
import { initialSnapshot, restoreSnapshot, type StoredSnapshot } from "../kernel/xstate.js";
import type { Completion, Waiter } from "./completion.js";
import type { LiveInput } from "./live-input.js";

export class LiveTurn {
  readonly id: string;
  /** What it holds and has not consumed. */
  inputs: readonly LiveInput[];
  /** Who waits for inputs that a checkpoint consumed: they hear how the turn ends. */
  readonly deferred = new Map<string, Waiter>();
  /** Checkpoints that were asked for and have not answered. */
  checkpoints = 0;
  readonly actor: DurableActor<typeof turnMachine>;
  readonly controller = new AbortController();
  /** When the executor was called; written with the turn's next commit. */
  begunAt: string | undefined;

  readonly #steerers: ((isWaiting: boolean) => void)[] = [];

  private constructor(
    id: string,
    inputs: readonly LiveInput[],
    actor: DurableActor<typeof turnMachine>,
  ) {
    this.id = id;
    this.inputs = inputs;
    this.actor = actor;
  }

  static stage(input: TurnInput, inputs: readonly LiveInput[], watch: ActorWatch): LiveTurn {
    const actor = new DurableActor({
      id: actorId(input.sessionId, input.turnId),
      machine: turnMachine,
      snapshot: initialSnapshot(turnMachine, input),
      watch,
    });
    return new LiveTurn(input.turnId, inputs, actor);
  }

  /** A turn that a crash cut off, only to be ended. */
  static restore(
    options: {
      readonly sessionId: string;
      readonly turnId: string;
      readonly snapshot: StoredSnapshot;
    },
    watch: ActorWatch,
  ): LiveTurn {
    const actor = new DurableActor({
      id: actorId(options.sessionId, options.turnId),
      machine: turnMachine,
      snapshot: restoreSnapshot(turnMachine, options.snapshot),
      watch,
    });
    return new LiveTurn(options.turnId, [], actor);
  }

  /** Resolves when something waits to steer this turn, or with false when it ends. */
  steered(isWaiting: boolean): Promise<boolean> {
    if (isWaiting) return Promise.resolve(true);
    if (this.hasEnded) return Promise.resolve(false);
    return new Promise((resolve) => this.#steerers.push(resolve));
  }

  steer(isWaiting: boolean): void {
    for (const resolve of this.#steerers.splice(0)) resolve(isWaiting);
  }

  /** Tells those who wait for inputs that were consumed before the end. */
  tellDeferred(completion: Completion): void {
    for (const waiter of this.deferred.values()) waiter.resolve(completion);
    this.deferred.clear();
  }

  get hasEnded(): boolean {
    return this.actor.snapshot.status !== "active";
  }
}

function actorId(sessionId: string, turnId: string): string {
  return `session/${sessionId}/turn/${turnId}`;
}
