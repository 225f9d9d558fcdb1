/**
 * Draining: ends what a supervisor owns, within a time. A turn that is cut off is never recorded as
 * cancelled: its inputs wait again, as after a crash.
 */
import type { CloseMode } from "../../machines/supervisor.js";
import { sleepUntil } from "../kernel/clock.js";
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
  const interrupted: string[] = [];
  const left: string[] = [];
  const deadline = sleepUntil(environment.clock, options.deadlineMs).then(() => "late" as const);
  await Promise.all(
    [...registry.live()].map(async (live) => {
      const { id } = live.runtime;
      const joined = live.loop.close().then(() => "joined" as const);
      if (options.mode === "cancel-and-drain" && (await cutOff(live, environment))) {
        interrupted.push(id);
      }
      if ((await Promise.race([joined, deadline])) === "late") {
        left.push(id);
        if (options.mode === "drain") return;
      }
      live.runtime.close("supervisor closed");
      live.runtime.stopExecutor();
      registry.release(id);
    }),
  );
  return { interrupted, left };
}

/** True when a turn was in progress. A store that cannot take it leaves the rows to recovery. */
async function cutOff({ runtime }: LiveSession, { logger }: Environment): Promise<boolean> {
  const { turn } = runtime.state;
  if (turn === null || turn.hasEnded || !runtime.isOpen) return false;
  try {
    await interruptForClose(runtime, "the supervisor closed");
  } catch (error) {
    turn.controller.abort();
    logger.warn({ sessionId: runtime.id, error }, "a turn could not be put back while closing");
  }
  return true;
}
