/** The turn in progress of a session, as it is held in memory. */
import { type TurnInput, turnMachine } from "../../machines/turn.js";
import { type ActorWatch, DurableActor } from "../kernel/actor.js";
import { initialSnapshot, restoreSnapshot, type StoredSnapshot } from "../kernel/xstate.js";
import type { LiveInput } from "./live-input.js";

export class LiveTurn {
  readonly id: string;
  readonly inputs: readonly LiveInput[];
  readonly actor: DurableActor<typeof turnMachine>;
  readonly controller = new AbortController();
  /** When the executor was called; written with the turn's next commit. */
  begunAt: string | undefined;

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

  get hasEnded(): boolean {
    return this.actor.snapshot.status !== "active";
  }
}

function actorId(sessionId: string, turnId: string): string {
  return `session/${sessionId}/turn/${turnId}`;
}
