/**
 * A clock for tests. Held, it moves only by `advance`. Jumping, it moves to the next due time by
 * itself whenever the process has nothing else to do, so that pauses cost nothing; background tasks
 * (passivation) wait for `advance` in both.
 */
import type { Cancel, Clock } from "../src/kernel/clock.js";

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly task: () => void;
  readonly kind: "work" | "background";
}

/** Rounds of the event loop after which everything that does not wait for time has come to rest. */
const ROUNDS_TO_REST = 6;

/** Work outside the event loop (a disk) that has not answered yet; while there is any, nothing rests. */
let outside = 0;

/** Counts work outside the event loop for as long as it lasts. */
export async function whileOutside<T>(work: () => Promise<T>): Promise<T> {
  outside += 1;
  try {
    return await work();
  } finally {
    outside -= 1;
  }
}

export async function untilRest(): Promise<void> {
  for (let round = 0; round < ROUNDS_TO_REST; round += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (outside > 0) round = -1;
  }
}

export class TestClock implements Clock {
  readonly #isJumping: boolean;
  #nowMs: number;
  #timers: Timer[] = [];
  #order = 0;
  #isPumping = false;

  constructor(
    options: { readonly mode: "held" | "jumping"; readonly startMs?: number } = { mode: "held" },
  ) {
    this.#isJumping = options.mode === "jumping";
    this.#nowMs = options.startMs ?? Date.UTC(2026, 0, 1);
  }

  nowMs(): number {
    return this.#nowMs;
  }

  /** Timers that are set. */
  get pending(): number {
    return this.#timers.length;
  }

  schedule(dueMs: number, task: () => void, kind: "work" | "background" = "work"): Cancel {
    const timer: Timer = { dueMs, order: this.#order, task, kind };
    this.#order += 1;
    this.#timers.push(timer);
    if (this.#isJumping) void this.#pump();
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves on, running what comes due in its order and letting each take its effect. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await untilRest();
    for (;;) {
      const timer = this.#earliest((other) => other.dueMs <= endMs);
      if (timer === undefined) break;
      this.#fire(timer);
      await untilRest();
    }
    this.#nowMs = endMs;
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    for (;;) {
      await untilRest();
      const timer = this.#earliest((other) => other.kind === "work");
      if (timer === undefined) break;
      this.#fire(timer);
    }
    this.#isPumping = false;
  }

  #earliest(isMeant: (timer: Timer) => boolean): Timer | undefined {
    return this.#timers.filter(isMeant).sort((a, b) => a.dueMs - b.dueMs || a.order - b.order)[0];
  }

  #fire(timer: Timer): void {
    this.#timers = this.#timers.filter((other) => other !== timer);
    this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
    timer.task();
  }
}
