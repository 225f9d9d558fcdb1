/**
 * The turn loop of one session: while its lanes hold work that may be taken, it stages a turn, calls
 * the executor outside every lock, and settles the turn. It never parks while there is work: the
 * decision to rest and the note that somebody woke it are made in the same synchronous step.
 */
import { isHoldfastError } from "../errors.js";
import { type Cancel, isoInstant } from "../kernel/clock.js";
import type { Executor, TranscriptReader, TurnRequest, TurnResult } from "./executors/executor.js";
import type { LiveTurn } from "./live-turn.js";
import { keys, type TranscriptEntry } from "./records.js";
import type { SessionRuntime } from "./runtime.js";
import {
  type CheckedResult,
  checkResult,
  completeTurn,
  failTurn,
  interruptTurn,
  stageTurn,
} from "./turns.js";

type Outcome =
  | { readonly type: "done"; readonly answer: CheckedResult }
  | { readonly type: "failed"; readonly reason: string };

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
      const turn = await runtime.exclusive(() => stageTurn(runtime));
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
    if (outcome === undefined) return;
    const runtime = this.#runtime;
    await runtime.exclusive(async () => {
      // Cancelled or interrupted in the meantime: its end is written, the answer comes too late.
      if (turn.hasEnded) return;
      if (outcome.type === "failed") return failTurn(runtime, turn, outcome.reason);
      try {
        await completeTurn(runtime, turn, outcome.answer);
      } catch (error) {
        // The work is done and its proof is not written: nothing is invented, waiters hear both.
        for (const input of turn.inputs) {
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

  /** Calls the executor. `undefined`: it was cancelled and did not come back in time. */
  async #apply(turn: LiveTurn): Promise<Outcome | undefined> {
    const runtime = this.#runtime;
    const { clock } = runtime.environment;
    let work: Promise<TurnResult>;
    let executor: Executor;
    try {
      executor = runtime.executor();
      turn.begunAt = isoInstant(clock.nowMs());
      work = Promise.resolve(executor.apply(requestOf(runtime, turn)));
    } catch (error) {
      return { type: "failed", reason: reasonOf(error) };
    }
    const outcome = work.then(
      (result): Outcome => {
        try {
          return { type: "done", answer: checkResult(result) };
        } catch (error) {
          return { type: "failed", reason: reasonOf(error) };
        }
      },
      (error: unknown): Outcome => ({ type: "failed", reason: reasonOf(error) }),
    );
    return this.#orGiveUp(turn, executor, outcome);
  }

  /** The outcome, or `undefined` when an executor that was aborted has had its time. */
  #orGiveUp(
    turn: LiveTurn,
    executor: Executor,
    outcome: Promise<Outcome>,
  ): Promise<Outcome | undefined> {
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
          resolve(undefined);
        });
      };
      turn.controller.signal.addEventListener("abort", giveUp, { once: true });
    });
  }
}

/** Cuts a turn off because its session ends; its inputs wait for the next opening. */
export async function interruptForClose(runtime: SessionRuntime, reason: string): Promise<void> {
  await runtime.exclusive(async () => {
    const { turn } = runtime.state;
    if (turn !== null && !turn.hasEnded) await interruptTurn(runtime, turn, reason);
  });
}

function requestOf(runtime: SessionRuntime, turn: LiveTurn): TurnRequest {
  const inputs = turn.inputs.map((input) => ({
    inputId: input.id,
    sequence: input.sequence,
    attempt: input.actor.context.attempts,
    header: input.header,
    payload: input.payload,
  }));
  return {
    turnId: turn.id,
    sessionId: runtime.id,
    inputs,
    transcript: transcriptOf(runtime),
    context: runtime.state.metadata,
    attempt: Math.max(...inputs.map((input) => input.attempt)),
    signal: turn.controller.signal,
  };
}

function transcriptOf(runtime: SessionRuntime): TranscriptReader {
  const { store } = runtime.environment;
  return {
    messages: runtime.state.ledger.messages,
    entries: runtime.state.ledger.nextTranscript,
    list: async ({ after, limit = 100 } = {}) => {
      const page = await store.list({
        prefix: keys.transcript(runtime.id),
        after: after === undefined ? undefined : keys.transcriptEntry(runtime.id, after),
        limit,
      });
      return page.records.map((record) => record.value as unknown as TranscriptEntry);
    },
  };
}

/** Why an attempt failed, as one line: it is kept with the turn and shown to waiters. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.replace(/\s+/g, " ").trim().toWellFormed();
  const name = error instanceof Error && !isHoldfastError(error) ? `${error.name}: ` : "";
  return `${name}${line}`.slice(0, 2_000).toWellFormed() || "no reason given";
}
