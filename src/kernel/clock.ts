/**
 * Time as a port. Everything that reads the time or waits does it through a `Clock`, so that tests
 * and simulations can hold and move it.
 */

export interface Clock {
  /** Epoch milliseconds. Never used to measure how long something took. */
  nowMs(): number;
  /**
   * Runs `task` once at `dueMs` (epoch milliseconds), soon when that has passed. Work that somebody
   * waits for keeps the process alive; housekeeping in the background does not.
   */
  schedule(dueMs: number, task: () => void, kind?: "work" | "background"): Cancel;
}

/** Takes a scheduled task back; without effect when it has run. */
export type Cancel = () => void;

/** Node rejects longer timers; longer waits are made of several. */
const TIMER_MAX_MS = 2_147_483_647;

/** The clock of the operating system. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  schedule(dueMs, task, kind = "work") {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const waitMs = Math.max(0, dueMs - Date.now());
      timer =
        waitMs > TIMER_MAX_MS ? setTimeout(arm, TIMER_MAX_MS) : setTimeout(task, Math.ceil(waitMs));
      if (kind === "background") timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};

/** An instant as ISO 8601 in UTC, the form that events and records carry. */
export function isoInstant(epochMs: number): string {
  // Many moves share a millisecond, and the formatting would be a few percent of a busy process.
  if (epochMs !== last.epochMs) last = { epochMs, instant: new Date(epochMs).toISOString() };
  return last.instant;
}
let last = { epochMs: 0, instant: "1970-01-01T00:00:00.000Z" };

/** True when `work` settled before `dueMs`, well or badly. It goes on in either case. */
export function settlesInTime(
  clock: Clock,
  dueMs: number,
  work: Promise<unknown>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(dueMs, () => resolve(false));
    const settle = (): void => {
      cancel();
      resolve(true);
    };
    work.then(settle, settle);
  });
}
