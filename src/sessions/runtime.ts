/**
 * The runtime of one session: its state in memory, the lock under which plans are made, and the one
 * way from a plan to its publication. What the plans say is the matter of admission, turns,
 * operations and recovery.
 */
import {
  AssertionError,
  assert,
  ClosedError,
  DestroyedError,
  NotReadyError,
  OperationError,
  StoreConflict,
  StoreError,
  StoreFenced,
  StoreUnavailable,
  show,
  TransitionError,
} from "../errors.js";
import { Mutex } from "../kernel/mutex.js";
import type { PlannedEffect } from "../kernel/plan.js";
import { retryBounded } from "../kernel/retry.js";
import { commitPlan, OutcomeUnknown } from "../kernel/unit-of-work.js";
import type { Key, Lease, ListRequest, RecordPage, StoredRecord } from "../store/port.js";
import { type Completion, completionOfOutcome, Waiter } from "./completion.js";
import type { Environment } from "./environment.js";
import type { Executor, ExecutorSource } from "./executors/executor.js";
import type { InputSurroundings, LiveInput } from "./live-input.js";
import { decodeInput, type EndedKey, keys } from "./records.js";
import type { SessionSchemas } from "./schema.js";
import { SessionPlan } from "./session-plan.js";
import type { SessionState } from "./session-state.js";
import { storedCompletion } from "./stored-completion.js";

/** Ended keys read at a time. */
const ENDED_KEYS_WINDOW = 64;

/** Who waits, by the id of the input. */
export type Waiters = Map<string, Waiter>;

/** What a runtime tells those around it. */
export interface RuntimeHost {
  /** The turn loop should look at the lanes. */
  wake(): void;
  /** The runtime no longer speaks for the store and must not be used again. */
  broken(error: unknown): void;
  /** The executor was let go on request; none is bound until somebody opens the session again. */
  unbound(): void;
  /** The session has left the registry for good. */
  released(): void;
}

export class SessionRuntime {
  readonly state: SessionState;
  readonly environment: Environment;
  readonly mutex = new Mutex();
  schemas: SessionSchemas = {};
  readonly #lease: Lease;
  #host: RuntimeHost = { wake() {}, broken() {}, unbound() {}, released() {} };
  #executor: Executor | Promise<Executor> | undefined;
  #source: ExecutorSource | undefined;
  #closed: ClosedError | undefined;

  constructor(options: {
    readonly state: SessionState;
    readonly environment: Environment;
    readonly lease: Lease;
  }) {
    this.state = options.state;
    this.environment = options.environment;
    this.#lease = options.lease;
  }

  get id(): string {
    return this.state.id;
  }

  connect(host: RuntimeHost): void {
    this.#host = host;
  }

  bindExecutor(source: ExecutorSource | undefined): void {
    this.#source = source;
    this.#executor = undefined;
  }

  get hasExecutor(): boolean {
    return this.#source !== undefined;
  }

  /** The executor of this session, made when it is first needed. */
  executor(): Executor | Promise<Executor> {
    assert(this.#source !== undefined, "a turn starts only where an executor is bound");
    if (this.#executor !== undefined) return this.#executor;
    const made = typeof this.#source === "function" ? this.#source(this.id) : this.#source;
    this.#executor = made;
    if (made instanceof Promise) {
      made.then(
        (executor) => {
          if (this.#executor === made) this.#executor = executor;
        },
        () => {
          // The next turn asks again.
          if (this.#executor === made) this.#executor = undefined;
        },
      );
    }
    return made;
  }

  /** Stops the executor without waiting for it: it is foreign code and may never answer. */
  stopExecutor(reason: "end" | "restart" = "end"): void {
    const executor = this.#executor;
    this.#executor = undefined;
    this.#source = undefined;
    if (executor === undefined) return;
    (async () => (await executor).stop?.(reason))().catch((error: unknown) =>
      this.environment.logger.warn({ sessionId: this.id, error }, "executor failed to stop"),
    );
  }

  /** @throws ClosedError once the runtime is closed or broken */
  requireOpen(): void {
    if (this.#closed !== undefined) throw this.#closed;
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  /**
   * No call is taken from here on. Who waits for an input that has not ended is handed over: to the
   * runtime that follows this one, or to be told that there is none.
   */
  close(cause?: unknown): Waiters {
    const waiters = new Map<string, Waiter>();
    if (this.#closed !== undefined) return waiters;
    this.#closed = new ClosedError(`session ${show(this.id)}`, cause);
    for (const input of this.state.inputs.values()) {
      waiters.set(input.id, input.waiter);
      input.actor.stop();
    }
    const { turn } = this.state;
    for (const [inputId, waiter] of turn?.deferred ?? []) waiters.set(inputId, waiter);
    turn?.actor.stop();
    turn?.steer(false);
    this.state.actor.stop();
    return waiters;
  }

  /** Takes on who waited at the runtime before; those whose input has ended hear how. */
  async adopt(waiters: Waiters): Promise<void> {
    for (const [inputId, waiter] of waiters) {
      const live = this.state.inputs.get(inputId);
      if (live === undefined) {
        waiter.resolve(await this.#completionOf(inputId));
        waiters.delete(inputId);
        continue;
      }
      // Nobody has asked the new runtime yet, or both hear the same.
      void live.waiter.promise.then((completion) => waiter.resolve(completion));
      waiters.delete(inputId);
    }
  }

  async #completionOf(inputId: string): Promise<Completion> {
    const index = await this.load(keys.inputId(this.id, inputId));
    const sequence = (index?.value as { readonly sequence: number } | undefined)?.sequence;
    const row = sequence === undefined ? undefined : await this.load(keys.input(this.id, sequence));
    // An ephemeral input does not outlive its runtime.
    if (row === undefined) return { type: "terminated", reason: "the session started again" };
    return storedCompletion((key) => this.load(key), this.id, decodeInput(row));
  }

  /** Resolves when every plan that was begun is durable or refused. */
  settled(): Promise<void> {
    return this.mutex.run(() => Promise.resolve());
  }

  /** What inputs need to know of this session. */
  surroundings(): InputSurroundings {
    const { silentIntents } = this.state.actor.context;
    return { sessionId: this.id, silentIntents, watch: this.environment.watch };
  }

  plan(): SessionPlan {
    const atMs = this.environment.clock.nowMs();
    return new SessionPlan(this.state, { operation: this.environment.ids.next(atMs), atMs });
  }

  /**
   * Runs `work` under the session's lock. Within it nothing but the store may be awaited.
   * @throws ClosedError once the runtime is closed or broken
   */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.mutex.run(() => {
      this.requireOpen();
      return work();
    });
  }

  /**
   * Runs an operation under the session's lock and answers in its terms.
   * @throws OperationError the store failed; memory and store are as before
   * @throws NotReadyError | DestroyedError the session's state does not take the operation
   */
  async operation<T>(name: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.exclusive(work);
    } catch (error) {
      if (error instanceof StoreError) throw new OperationError(name, this.id, error);
      if (!(error instanceof TransitionError)) throw error;
      const { state } = this.state.actor;
      if (state === "destroyed") throw new DestroyedError(this.id, name);
      throw new NotReadyError(this.id, state, name);
    }
  }

  /**
   * Makes a plan durable, then public. On an error nothing has changed in memory; where the outcome
   * cannot be known, or another owner holds the session, the runtime breaks and is read again.
   */
  async commit(plan: SessionPlan): Promise<void> {
    const { store, clock, limits } = this.environment;
    const proof = plan.seal(limits);
    try {
      await commitPlan(plan, { store, lease: this.#lease, clock, proof });
    } catch (error) {
      if (isFatal(error)) this.#host.broken(error);
      throw error;
    }
    plan.publish((effect) => this.#run(effect, plan));
  }

  /** A read of this session's records, tried again while the store is unavailable. */
  load(key: Key): Promise<StoredRecord | undefined> {
    const { store, clock } = this.environment;
    return retryBounded(() => store.load(key), { clock, mayRetry: isUnavailable });
  }

  /** A page of this session's records, likewise. */
  list(request: ListRequest): Promise<RecordPage> {
    const { store, clock } = this.environment;
    return retryBounded(() => store.list(request), { clock, mayRetry: isUnavailable });
  }

  /** Reads the oldest ended keys when the window is used up; to be called before inputs end. */
  async refreshEndedKeys(): Promise<void> {
    if (this.state.oldestEndedKeys.length > 0 || this.state.ledger.endedKeys === 0) return;
    const prefix = keys.endedKeys(this.id);
    const page = await this.list({ prefix, limit: ENDED_KEYS_WINDOW });
    this.state.oldestEndedKeys = page.records.map((record) => ({
      ...(record.value as unknown as Omit<EndedKey, "sequence">),
      sequence: Number(record.key.at(-1)),
    }));
  }

  #run(effect: PlannedEffect, plan: SessionPlan): void {
    switch (effect.type) {
      case "enterLane":
        this.#enterLane(this.#inputOf(effect));
        break;
      case "leaveLane":
        this.state.lanes.leave(this.#inputOf(effect));
        break;
      case "tellEnd":
        this.#tellEnd(this.#inputOf(effect), plan);
        break;
      case "wakeLoop":
        this.#host.wake();
        break;
      case "abortExecutor":
        this.state.turn?.controller.abort();
        break;
      case "stopExecutor":
        this.stopExecutor();
        this.#host.unbound();
        break;
      case "releaseSession":
        this.#host.released();
        break;
      default:
        assert(false, `effect ${effect.type} of a chart has a handler`);
    }
  }

  #enterLane(input: LiveInput): void {
    this.state.lanes.enter(input);
    if (input.lane === "steer" && input.drives) this.state.turn?.steer(true);
  }

  #inputOf(effect: PlannedEffect): LiveInput {
    const input = this.state.inputOfActor.get(effect.actor.id);
    assert(input !== undefined, `actor ${effect.actor.id} is an input of this session`);
    return input;
  }

  #tellEnd(input: LiveInput, plan: SessionPlan): void {
    const { outcome } = input.actor.context;
    assert(outcome !== null, "an ended input has an outcome");
    const turn = plan.deferralOf(input);
    if (turn !== undefined) turn.deferred.set(input.id, input.waiter);
    else input.waiter.resolve(plan.completionOf(input) ?? completionOfOutcome(outcome));
    input.actor.stop();
    this.state.inputOfActor.delete(input.actor.id);
  }

  /** Tells waiters of an input that goes on; the next outcome has a waiter of its own. */
  tellRetry(input: LiveInput, completion: Completion): void {
    const { waiter } = input;
    input.waiter = new Waiter();
    waiter.resolve(completion);
  }
}

/** After these errors what memory says and what the store says may differ. */
function isFatal(error: unknown): boolean {
  return (
    error instanceof StoreFenced ||
    error instanceof StoreConflict ||
    error instanceof OutcomeUnknown ||
    error instanceof AssertionError
  );
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof StoreUnavailable;
}
