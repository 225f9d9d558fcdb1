/**
 * The lanes of a session: inputs that wait, in the order of their positions, and the rule by which a
 * turn takes a batch from them. The steer lane goes first.
 */
import type { TurnBoundary } from "../../machines/turn.js";

export type LaneName = "queue" | "steer";

/** What a lane needs to know of an input. */
export interface LaneItem {
  readonly position: number;
  readonly lane: LaneName;
  readonly boundary: TurnBoundary;
  /** Prompts have a turn to themselves. */
  readonly isPrompt: boolean;
  /** Whether the input may open a turn by itself; others ride along. */
  readonly drives: boolean;
  /** Not before this instant, epoch milliseconds; 0 for at once. */
  readonly notBeforeMs: number;
}

/** Inputs that one turn takes at most. */
export const BATCH_MAX = 256;

export class Lanes<T extends LaneItem> {
  readonly #lanes: Readonly<Record<LaneName, T[]>> = { queue: [], steer: [] };

  get size(): number {
    return this.#lanes.queue.length + this.#lanes.steer.length;
  }

  /** All that wait, in the order in which turns would take them. */
  items(): readonly T[] {
    return [...this.#lanes.steer, ...this.#lanes.queue];
  }

  /** Puts an input at its position; nearly always that is the end. */
  enter(item: T): void {
    const lane = this.#lanes[item.lane];
    let at = lane.length;
    while (at > 0 && (lane[at - 1]?.position ?? -1) > item.position) at -= 1;
    lane.splice(at, 0, item);
  }

  clear(): void {
    this.#lanes.queue.length = 0;
    this.#lanes.steer.length = 0;
  }

  leave(item: T): void {
    const lane = this.#lanes[item.lane];
    const at = lane[0] === item ? 0 : lane.indexOf(item);
    if (at >= 0) lane.splice(at, 1);
  }

  /** The first that waits and fits, the queue lane before the steer lane. */
  find(fits: (item: T) => boolean): T | undefined {
    return this.#lanes.queue.find(fits) ?? this.#lanes.steer.find(fits);
  }

  /**
   * The next batch: from the steer lane its prefix with equal boundary; else from the queue lane one
   * prompt alone, or consecutive inputs that are none. Inputs that do not drive ride along with the
   * first that does, those of the steer lane too; a batch without any is left until one comes.
   * Changes nothing.
   */
  select(nowMs: number): readonly T[] {
    const steering = this.steering(nowMs);
    if (steering.some((item) => item.drives)) return steering;
    const batch = batchOf(
      this.#lanes.queue,
      nowMs,
      (driver, item) => !driver.isPrompt && !item.isPrompt,
    );
    const hasDriver = batch.some((item) => item.drives);
    return hasDriver ? [...steering, ...batch].slice(-BATCH_MAX) : [];
  }

  /** What a turn in progress can take at its next boundary. */
  steering(nowMs: number): readonly T[] {
    return batchOf(
      this.#lanes.steer,
      nowMs,
      (driver, item) => driver.boundary === item.boundary,
    ).slice(-BATCH_MAX);
  }

  /** When the earliest input that waits for its time may be taken, if all that could be taken do. */
  nextDueMs(nowMs: number): number | undefined {
    let due: number | undefined;
    for (const lane of Object.values(this.#lanes)) {
      for (const item of lane) {
        if (item.notBeforeMs > nowMs && (due === undefined || item.notBeforeMs < due)) {
          due = item.notBeforeMs;
        }
      }
    }
    return due;
  }
}

/** What rides along, the first that drives, and what goes with that one. */
function batchOf<T extends LaneItem>(
  lane: readonly T[],
  nowMs: number,
  goesWith: (driver: T, item: T) => boolean,
): readonly T[] {
  const batch: T[] = [];
  let driver: T | undefined;
  for (const item of lane) {
    if (item.notBeforeMs > nowMs) continue;
    if (driver !== undefined && (batch.length >= BATCH_MAX || !goesWith(driver, item))) break;
    batch.push(item);
    if (item.drives) driver ??= item;
  }
  return batch;
}
