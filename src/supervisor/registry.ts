/**
 * The registry: which sessions this process serves, and their runtimes while they are in memory.
 * Actors are activated when they are needed, leave memory when they are idle, and are built again
 * from the store when their code or their store failed. One broken session holds up no other.
 */
import { ClosedError, DestroyedError, NotReadyError, StoreFenced, show } from "../errors.js";
import { type Cancel, settlesInTime } from "../kernel/clock.js";
import { RestartBudget } from "../kernel/restarts.js";
import type { Environment } from "../sessions/environment.js";
import { sessionViewOf } from "../sessions/handle.js";
import { beginUnregister, endUnregister, resumeRegistration } from "../sessions/operations.js";
import type { SessionOptions } from "../sessions/options.js";
import { keys } from "../sessions/records.js";
import { activate, type RecoveryReport } from "../sessions/recovery.js";
import type { SessionRuntime, Waiters } from "../sessions/runtime.js";
import { interruptForClose, TurnLoop } from "../sessions/turn-loop.js";

/** A session in memory. */
export interface LiveSession {
  readonly runtime: SessionRuntime;
  readonly loop: TurnLoop;
  readonly report: RecoveryReport;
  readonly isNew: boolean;
  usedAtMs: number;
}

interface Entry {
  options: SessionOptions;
  readonly restarts: RestartBudget;
  live: LiveSession | undefined;
  activating: Promise<LiveSession> | undefined;
  /** Who waits for inputs while the session is not in memory. */
  readonly waiters: Waiters;
  /** Why calls are refused until the session is opened again: it is parked, or held elsewhere. */
  parked: ClosedError | undefined;
  alarm: Cancel | undefined;
  /** Whether it stays in memory without work, where somebody has said so here. */
  keepAlive: boolean | undefined;
  /** Unregistering, while it is in progress. */
  leaving: Promise<void> | undefined;
}

export class Registry {
  readonly #environment: Environment;
  readonly #entries = new Map<string, Entry>();
  #closed: ClosedError | undefined;
  #sweep: Cancel | undefined;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Sessions in memory. */
  *live(): IterableIterator<LiveSession> {
    for (const entry of this.#entries.values()) if (entry.live !== undefined) yield entry.live;
  }

  peek(id: string): SessionRuntime | undefined {
    return this.#entries.get(id)?.live?.runtime;
  }

  /** Why a session is parked, if it is. */
  parked(id: string): ClosedError | undefined {
    return this.#entries.get(id)?.parked;
  }

  /** Registers a session and brings it to life; a new executor takes over from one before. */
  async open(id: string, options: SessionOptions): Promise<LiveSession> {
    this.requireOpen();
    await this.#entries.get(id)?.leaving?.catch(() => undefined);
    const known = this.#entries.get(id);
    if (known === undefined) {
      const entry: Entry = {
        options,
        restarts: new RestartBudget(this.#environment.limits, this.#environment.random),
        live: undefined,
        activating: undefined,
        waiters: new Map(),
        parked: undefined,
        alarm: undefined,
        keepAlive: undefined,
        leaving: undefined,
      };
      this.#entries.set(id, entry);
      try {
        return await this.#activated(id, entry, { register: true });
      } catch (error) {
        // Another call may have opened it meanwhile; only what never came to life is taken back.
        if (entry.live === undefined && this.#entries.get(id) === entry) this.#entries.delete(id);
        throw error;
      }
    }
    known.parked = undefined;
    const { executor, metadata, schemas } = options;
    known.options = {
      ...known.options,
      ...(schemas === undefined ? {} : { schemas }),
      ...(executor === undefined ? {} : { executor }),
      ...(metadata === undefined ? {} : { metadata }),
    };
    const wasLive = known.live ?? (await known.activating);
    const live = await this.#activated(id, known, { register: true });
    // One that was brought to life just now has them already.
    const isNews = executor !== undefined || metadata !== undefined;
    const isStopped = live.runtime.state.actor.state === "stopped";
    if ((wasLive === live && isNews) || isStopped) await bind(live, options);
    live.runtime.schemas = known.options.schemas ?? {};
    return live;
  }

  /**
   * The runtime of a registered session.
   * @throws NotReadyError it is not registered
   * @throws ClosedError it is parked, held by another supervisor, or everything is closed
   */
  async runtime(id: string): Promise<SessionRuntime> {
    this.requireOpen();
    const entry = this.#entries.get(id);
    if (entry === undefined) throw await this.#absent(id);
    if (entry.parked !== undefined) throw entry.parked;
    const live = entry.live ?? (await this.#activated(id, entry, { register: false }));
    live.usedAtMs = this.#environment.clock.nowMs();
    return live.runtime;
  }

  /**
   * Lets a session go: a turn in progress may still commit, within `closeMs`; then it is cut off and
   * its inputs wait. When leaving does not commit, the session goes on as it was.
   */
  async unregister(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.leaving ??= this.#leave(id, entry).finally(() => {
      entry.leaving = undefined;
    });
    await entry.leaving;
  }

  /** Lets a session go, whatever stands in the way: it was only prepared. */
  async abandon(id: string): Promise<void> {
    try {
      await this.unregister(id);
    } catch (error) {
      this.#environment.logger.warn({ sessionId: id, error }, "a prepared session did not leave");
      this.release(id, UNREGISTERED);
    }
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** Says whether a session stays in memory without work, whatever its metadata says. */
  keepAlive(id: string, isKept: boolean): void {
    this.requireOpen();
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new NotReadyError(id, "destroyed", "configure its ingress");
    entry.keepAlive = isKept;
    this.#keepSweeping();
  }

  async #leave(id: string, entry: Entry): Promise<void> {
    if (entry.parked !== undefined) return this.release(id, UNREGISTERED);
    const live = entry.live ?? (await this.#activated(id, entry, { register: false }));
    const { runtime, loop } = live;
    await beginUnregister(runtime);
    try {
      const { clock, limits } = this.#environment;
      if (!(await settlesInTime(clock, clock.nowMs() + limits.closeMs, loop.rest()))) {
        await interruptForClose(runtime, UNREGISTERED);
      }
      await endUnregister(runtime);
    } catch (error) {
      await resumeRegistration(runtime).catch((cause: unknown) =>
        this.#fail(id, entry, live, cause),
      );
      throw error;
    }
  }

  /** Why a session that is not registered cannot be called. */
  async #absent(id: string): Promise<Error> {
    const record = await this.#environment.store.load(keys.session(id));
    const isDestroyed = record !== undefined && sessionViewOf(record).state === "destroyed";
    return isDestroyed
      ? new DestroyedError(id, "take this call")
      : new NotReadyError(id, "destroyed", "take this call");
  }

  /** From here on every call is refused. Sessions in memory stay until they are released. */
  close(subject: string): void {
    this.#closed ??= new ClosedError(subject);
    this.#sweep?.();
    for (const entry of this.#entries.values()) entry.alarm?.();
  }

  requireOpen(): void {
    if (this.#closed !== undefined) throw this.#closed;
  }

  /** Forgets a session; who still waits for its inputs hears why. */
  release(id: string, reason: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    entry.alarm?.();
    endWaiters(entry.waiters, reason);
    if (entry.live !== undefined) endWaiters(entry.live.runtime.close(), reason);
  }

  /** Resolves when no session is on its way into memory. */
  async activated(): Promise<void> {
    await Promise.allSettled([...this.#entries.values()].map((entry) => entry.activating));
  }

  /** Forgets all that is not in memory. */
  releaseIdle(reason: string): void {
    for (const [id, entry] of this.#entries) if (entry.live === undefined) this.release(id, reason);
  }

  async #activated(id: string, entry: Entry, how: Registering): Promise<LiveSession> {
    if (entry.live !== undefined) return entry.live;
    entry.activating ??= this.#activate(id, entry, how).finally(() => {
      entry.activating = undefined;
    });
    return entry.activating;
  }

  async #activate(id: string, entry: Entry, { register }: Registering): Promise<LiveSession> {
    const { executor, metadata, silentIntents } = entry.options;
    const attach = executor !== undefined;
    const activated = await activate(this.#environment, id, {
      metadata,
      silentIntents,
      attach,
      register,
    });
    const { runtime } = activated;
    await runtime.adopt(entry.waiters);
    this.requireOpen();
    const loop = new TurnLoop(runtime, {
      failed: (error) => this.#fail(id, entry, live, error),
      rested: () => {
        live.usedAtMs = this.#environment.clock.nowMs();
      },
    });
    const live: LiveSession = { ...activated, loop, usedAtMs: this.#environment.clock.nowMs() };
    runtime.bindExecutor(executor);
    runtime.schemas = entry.options.schemas ?? {};
    runtime.connect({
      wake: () => loop.wake(),
      broken: (error) => this.#fail(id, entry, live, error),
      unbound: () => {
        entry.options = { ...entry.options, executor: undefined };
      },
      released: () => this.release(id, UNREGISTERED),
    });
    entry.live = live;
    this.#keepSweeping();
    loop.wake();
    return live;
  }

  /** The runtime no longer speaks for the store: it goes, and comes back from its last commit. */
  #fail(id: string, entry: Entry, live: LiveSession, error: unknown): void {
    if (entry.live !== live) return;
    entry.live = undefined;
    for (const [inputId, waiter] of live.runtime.close(error)) entry.waiters.set(inputId, waiter);
    live.runtime.state.turn?.controller.abort();
    live.runtime.stopExecutor("restart");
    void live.loop.close();
    this.#restart(id, entry, error);
  }

  #restart(id: string, entry: Entry, error: unknown): void {
    if (this.#closed !== undefined || this.#entries.get(id) !== entry) return;
    const { logger, clock } = this.#environment;
    const pauseMs = error instanceof StoreFenced ? undefined : entry.restarts.take(clock.nowMs());
    if (pauseMs === undefined) {
      this.#park(id, entry, error);
      return;
    }
    logger.warn({ sessionId: id, error, pauseMs }, "session starts again");
    entry.alarm = clock.schedule(clock.nowMs() + pauseMs, () => {
      entry.alarm = undefined;
      this.#activated(id, entry, { register: false }).catch((cause: unknown) =>
        this.#restart(id, entry, cause),
      );
    });
  }

  /** Calls are refused with the reason until somebody opens the session again. */
  #park(id: string, entry: Entry, error: unknown): void {
    const isFenced = error instanceof StoreFenced;
    const why = isFenced ? "which another supervisor holds" : "which failed too often";
    entry.parked = new ClosedError(`session ${show(id)}, ${why},`, error);
    endWaiters(entry.waiters, isFenced ? "another supervisor holds the session" : "session parked");
    const { logger } = this.#environment;
    if (isFenced) logger.warn({ sessionId: id, error }, "session is held by another supervisor");
    else logger.error({ sessionId: id, error }, "session is parked");
  }

  #keepSweeping(): void {
    if (this.#sweep !== undefined || this.#closed !== undefined) return;
    const { clock, limits } = this.#environment;
    const sweep = (): void => {
      this.#sweep = undefined;
      if (this.#passivateIdle(clock.nowMs() - limits.idleMs)) this.#keepSweeping();
    };
    this.#sweep = clock.schedule(clock.nowMs() + limits.idleMs / 2, sweep, "background");
  }

  /** Lets sessions without work leave memory. True while any is left in it. */
  #passivateIdle(beforeMs: number): boolean {
    let isAnyLive = false;
    for (const entry of this.#entries.values()) {
      const { live } = entry;
      if (live === undefined) continue;
      const { runtime, loop } = live;
      const isKept = entry.keepAlive ?? runtime.state.metadata.keepAlive === true;
      const hasWork = !runtime.mutex.isFree || !loop.isResting || runtime.state.inputs.size > 0;
      if (!isKept && !hasWork && live.usedAtMs <= beforeMs) {
        entry.live = undefined;
        runtime.close();
      } else {
        isAnyLive = true;
      }
    }
    return isAnyLive;
  }
}

/** Binds another executor to a session in memory; a stopped one is taken back into service. */
async function bind({ runtime }: LiveSession, options: SessionOptions): Promise<void> {
  const { executor, metadata } = options;
  await runtime.exclusive(async () => {
    const { actor } = runtime.state;
    const plan = runtime.plan();
    if (metadata !== undefined) plan.metadata = metadata;
    if (actor.state === "stopped") plan.moveSession({ type: "register" });
    if (executor !== undefined) {
      plan.moveSession({ type: "attach", generation: actor.context.generation + 1 });
      plan.onPublish(() => runtime.bindExecutor(executor));
    }
    await runtime.commit(plan);
  });
}

/** What waiters hear. */
const UNREGISTERED = "session unregistered";

interface Registering {
  /** Whether a stopped session is taken back into service. */
  readonly register: boolean;
}

function endWaiters(waiters: Waiters, reason: string): void {
  for (const waiter of waiters.values()) waiter.resolve({ type: "terminated", reason });
  waiters.clear();
}
