/**
 * How often an actor may be started again: at once while it is rare, with growing pauses when it is
 * not, and not any more when even those do not help.
 */
import type { Limits } from "../limits.js";

const FIRST_PAUSE_MS = 500;
const PAUSE_MAX_MS = 30_000;
/** Restarts with a pause before the actor is parked. */
const PAUSED_RESTARTS_MAX = 7;

export class RestartBudget {
  readonly #limits: Limits;
  readonly #random: () => number;
  /** Instants of restarts that still count, in epoch milliseconds. */
  #restarts: number[] = [];

  constructor(limits: Limits, random: () => number) {
    this.#limits = limits;
    this.#random = random;
  }

  /** Takes one restart. Gives the pause before it in milliseconds, or `undefined`: park the actor. */
  take(nowMs: number): number | undefined {
    const { restartsMax, restartWindowMs } = this.#limits;
    // Pauses do not let the count expire: the window reaches back over the time that was waited.
    const last = this.#restarts.at(-1);
    if (last !== undefined && nowMs - last > restartWindowMs) this.#restarts = [];
    const paused = this.#restarts.length - restartsMax;
    if (paused >= PAUSED_RESTARTS_MAX) return undefined;
    const pauseMs =
      paused < 0
        ? 0
        : Math.min(PAUSE_MAX_MS, FIRST_PAUSE_MS * 2 ** paused) * (1 - this.#random() / 4);
    this.#restarts.push(nowMs + pauseMs);
    return pauseMs;
  }
}
