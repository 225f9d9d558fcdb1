/**
 * Draining: ends what a supervisor owns, within a time. A turn that is cut off is never recorded as
 * cancelled: its inputs wait again, as after a crash.
 */
import type { CloseMode } from "../../machines/supervisor.js";
import { settlesInTime } from "../kernel/clock.js";
import type { Environment } from "../sessions/environment.js";
import { interruptForClose } from "../sessions/turn-loop.js";
import type { LiveSession, Registry } from "./registry.js";

export interface CloseReport {
  /** True when nothing is left and the store is closed. */
  readonly isClosed: boolean;
  /** Sessions whose turn was cut off; their inputs wait for the next opening. */
  readonly interrupted: readonly string[];
  /** Sessions whose executor had not come back when the time was over. */
  readonly left: readonly string[];
  /** Why this supervisor failed, if it did. */
  readonly cause?: unknown;
}

export async function drain(
  registry: Registry,
  environment: Environment,
  options: { readonly mode: CloseMode; readonly deadlineMs: number },
): Promise<Omit<CloseReport, "isClosed">> {
  const { mode, deadlineMs } = options;
  const interrupted: string[] = [];
  const left: string[] = [];
  // What is on its way into memory is refused there, or is drained with the others.
  await settlesInTime(environment.clock, deadlineMs, registry.activated());
  await Promise.all(
    [...registry.live()].map(async (live) => {
      const { id } = live.runtime;
      const closed = live.loop.close();
      const cut = mode === "cancel-and-drain" ? cutOff(live, environment) : undefined;
      void cut?.then((wasCutOff) => wasCutOff && interrupted.push(id));
      const joined = Promise.all([closed, cut]).then(() => live.runtime.settled());
      if (!(await settlesInTime(environment.clock, deadlineMs, joined))) {
        left.push(id);
        if (mode === "drain") return;
      }
      live.runtime.stopExecutor();
      registry.release(id, CLOSED);
    }),
  );
  registry.releaseIdle(CLOSED);
  return { interrupted, left };
}

/** What waiters hear. */
const CLOSED = "supervisor closed";

/** True when a turn was in progress. A store that cannot take it leaves the rows to recovery. */
async function cutOff({ runtime }: LiveSession, { logger }: Environment): Promise<boolean> {
  try {
    return await interruptForClose(runtime, "the supervisor closed");
  } catch (error) {
    const { turn } = runtime.state;
    turn?.controller.abort();
    logger.warn({ sessionId: runtime.id, error }, "a turn could not be put back while closing");
    return turn !== null;
  }
}
