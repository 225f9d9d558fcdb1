/**
 * The turn loop of one session: while its lanes hold work that may be taken, it stages a turn, calls
 * the executor outside every lock, and settles the turn. It never parks while there is work: the
 * decision to rest and the note that somebody woke it are made in the same synchronous step.
 */
import { isHoldfastError } from "../errors.js";
import { type Cancel, isoInstant } from "../kernel/clock.js";
import { completeTurn } from "./boundaries.js";
import type { Executor, TurnResult } from "./executors/executor.js";
import type { LiveTurn } from "./live-turn.js";
import type { SessionRuntime } from "./runtime.js";
import { requireFit } from "./schema.js";
import { type CheckedAnswer, checkAnswer } from "./turn-answer.js";
import { requestOf } from "./turn-request.js";
import { expireTurn, failTurn, interruptTurn, stageTurn } from "./turns.js";

type Outcome =
  | { readonly type: "done"; readonly answer: CheckedAnswer }
  | { readonly type: "failed"; readonly reason: string }
  /** The executor was not there within the bound. */
  | { readonly type: "late" };

/** What the loop tells those around it. */
export interface LoopHost {
  /** The session cannot go on with what it has in memory, or its executor did not come back. */
  failed(error: unknown): void;
  /** The loop has nothing to do. */
  rested(): void;
}

export class TurnLoop {
  readonly #runtime: SessionRuntime;
  readonly #host: LoopHost;
  #isWanted = false;
  #isClosing = false;
  #running: Promise<void> | undefined;
  #alarm: Cancel | undefined;

  constructor(runtime: SessionRuntime, host: LoopHost) {
    this.#runtime = runtime;
    this.#host = host;
  }

  get isResting(): boolean {
    return this.#running === undefined && this.#alarm === undefined;
  }

  /** There may be work. Cheap, and never wrong to call. */
  wake(): void {
    this.#isWanted = true;
    if (this.#running !== undefined || this.#isClosing) return;
    this.#alarm?.();
    this.#alarm = undefined;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      // Somebody may have woken the loop after its last look; their note must not be lost.
      if (this.#isWanted) this.wake();
      else this.#host.rested();
    });
  }

  /** Resolves when no turn is in progress; whether one may begin later is not decided here. */
  async rest(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** No turn begins from here on. Resolves when the turn in progress has settled. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#isWanted = false;
    this.#alarm?.();
    this.#alarm = undefined;
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      while (this.#isWanted && !this.#isClosing && this.#runtime.isOpen) {
        this.#isWanted = false;
        await this.#drain();
      }
    } catch (error) {
      this.#isWanted = false;
      if (this.#runtime.isOpen) this.#host.failed(error);
    }
  }

  async #drain(): Promise<void> {
    const runtime = this.#runtime;
    while (!this.#isClosing && runtime.isOpen) {
      const turn = await runtime.exclusive(async () =>
        this.#isClosing ? null : stageTurn(runtime),
      );
      if (turn === null) break;
      await this.#execute(turn);
    }
    this.#setAlarm();
  }

  /** Inputs that pause after a failure are looked at again when their time has come. */
  #setAlarm(): void {
    const { clock } = this.#runtime.environment;
    const dueMs = this.#runtime.state.lanes.nextDueMs(clock.nowMs());
    if (dueMs === undefined || this.#isClosing) return;
    this.#alarm?.();
    this.#alarm = clock.schedule(dueMs, () => {
      this.#alarm = undefined;
      this.wake();
    });
  }

  async #execute(turn: LiveTurn): Promise<void> {
    const outcome = await this.#apply(turn);
    const runtime = this.#runtime;
    await runtime.exclusive(async () => {
      // Cancelled or interrupted in the meantime: its end is written, the answer comes too late.
      if (turn.hasEnded) return;
      if (outcome.type === "late") return expireTurn(runtime, turn);
      if (outcome.type === "failed") return failTurn(runtime, turn, outcome.reason);
      const { inputs } = turn;
      try {
        await completeTurn(runtime, turn, outcome.answer);
      } catch (error) {
        // The work is done and its proof is not written: nothing is invented, waiters hear both.
        for (const input of inputs) {
          runtime.tellRetry(input, {
            type: "completedWithFinalizationFailure",
            result: outcome.answer.result ?? null,
            error: error instanceof Error ? error.message : String(error),
          });
        }
        throw error;
      }
    });
  }

  /** Gets the executor and calls it, each within its bound. */
  async #apply(turn: LiveTurn): Promise<Outcome> {
    const runtime = this.#runtime;
    const { signal } = turn.controller;
    try {
      const executor = await executorInTime(runtime, turn);
      if (executor === undefined) return { type: "late" };
      const request = await requestOf(runtime, turn);
      signal.throwIfAborted();
      turn.begunAt = isoInstant(runtime.environment.clock.nowMs());
      const work = (async () => executor.apply(request))();
      const outcome = work.then(
        (answer) => outcomeOf(runtime, turn, answer),
        (error: unknown): Outcome => ({ type: "failed", reason: reasonOf(error) }),
      );
      return await this.#orGiveUp(turn, executor, outcome);
    } catch (error) {
      return { type: "failed", reason: reasonOf(error) };
    }
  }

  /** The outcome, or a failure when an executor that was aborted has had its time. */
  #orGiveUp(turn: LiveTurn, executor: Executor, outcome: Promise<Outcome>): Promise<Outcome> {
    const { clock, limits, logger } = this.#runtime.environment;
    return new Promise((resolve) => {
      let grace: Cancel | undefined;
      void outcome.then((value) => {
        grace?.();
        resolve(value);
      });
      const giveUp = (): void => {
        Promise.resolve()
          .then(() => executor.cancel?.())
          .catch((error: unknown) =>
            logger.warn({ turnId: turn.id, error }, "executor failed to cancel"),
          );
        grace = clock.schedule(clock.nowMs() + limits.cancelGraceMs, () => {
          logger.warn({ turnId: turn.id }, "executor did not come back after its turn was cut off");
          resolve({ type: "failed", reason: "it did not come back after it was aborted" });
        });
      };
      if (turn.controller.signal.aborted) giveUp();
      else turn.controller.signal.addEventListener("abort", giveUp, { once: true });
    });
  }
}

/** `undefined`: the bound for beginning a turn has passed. Aborting the turn ends the wait. */
function executorInTime(runtime: SessionRuntime, turn: LiveTurn): Promise<Executor | undefined> {
  const { clock, limits, logger } = runtime.environment;
  const made = runtime.executor();
  if (!(made instanceof Promise)) return Promise.resolve(made);
  return new Promise((resolve, reject) => {
    const cancels = [
      clock.schedule(clock.nowMs() + limits.turnStartNoticeMs, () =>
        logger.warn({ sessionId: runtime.id, turnId: turn.id }, "a turn waits for its executor"),
      ),
      clock.schedule(clock.nowMs() + limits.turnStartMaxMs, () => settle(() => resolve(undefined))),
    ];
    const settle = (end: () => void): void => {
      for (const cancel of cancels) cancel();
      signal.removeEventListener("abort", abort);
      end();
    };
    const { signal } = turn.controller;
    const abort = (): void => settle(() => reject(signal.reason));
    signal.addEventListener("abort", abort, { once: true });
    made.then(
      (executor) => settle(() => resolve(executor)),
      (error: unknown) => settle(() => reject(error)),
    );
  });
}

async function outcomeOf(
  { schemas }: SessionRuntime,
  turn: LiveTurn,
  result: TurnResult,
): Promise<Outcome> {
  if (turn.checkpoints > 0) {
    return { type: "failed", reason: "the executor did not await its checkpoint" };
  }
  try {
    const answer = checkAnswer(result);
    if (answer.callback === undefined) {
      await requireFit(schemas.result, answer.result ?? null, "executor's result");
    }
    return { type: "done", answer };
  } catch (error) {
    return { type: "failed", reason: reasonOf(error) };
  }
}

/**
 * Cuts a turn off because its session ends; its inputs wait for the next opening. One that is being
 * staged counts: the lock is taken before anybody looks. False when there is none.
 */
export function interruptForClose(runtime: SessionRuntime, reason: string): Promise<boolean> {
  return runtime.exclusive(async () => {
    const { turn } = runtime.state;
    if (turn === null || turn.hasEnded) return false;
    await interruptTurn(runtime, turn, reason);
    return true;
  });
}

/** Why an attempt failed, as one line: it is kept with the turn and shown to waiters. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.replace(/\s+/g, " ").trim().toWellFormed();
  const name = error instanceof Error && !isHoldfastError(error) ? `${error.name}: ` : "";
  return `${name}${line}`.slice(0, 2_000).toWellFormed() || "no reason given";
}
