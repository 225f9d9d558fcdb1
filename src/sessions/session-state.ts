/**
 * The state of one session in memory: its committed actors, lanes and counts. It changes only when
 * a plan is published. Everything in it can be built again from the store.
 */
import type { sessionMachine } from "../../machines/session.js";
import type { DurableActor } from "../kernel/actor.js";
import type { JsonObject } from "../store/port.js";
import type { Lanes } from "./lanes.js";
import type { LiveInput } from "./live-input.js";
import type { LiveTurn } from "./live-turn.js";
import type { EndedKey, Ledger } from "./records.js";

export interface SessionState {
  readonly id: string;
  readonly actor: DurableActor<typeof sessionMachine>;
  metadata: JsonObject;
  readonly createdAt: string;
  ledger: Ledger;
  /** Inputs that have not ended, by id, in the order of their sequence. */
  readonly inputs: Map<string, LiveInput>;
  /** The same inputs by the id of their actor, for the effects of charts. */
  readonly inputOfActor: Map<string, LiveInput>;
  readonly lanes: Lanes<LiveInput>;
  turn: LiveTurn | null;
  /** The oldest keys of ended inputs that are kept; a window, read again when it is used up. */
  oldestEndedKeys: readonly EndedKey[];
}
