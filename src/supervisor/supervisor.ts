/**
 * The supervisor: one process's reign over a store. It opens, serves and closes; everything durable
 * happens in the rooms below it.
 */
import {
  type CloseMode,
  type SupervisorEvent,
  supervisorMachine,
} from "../../machines/supervisor.js";
import type { BlobStore } from "../blobs/blob-store.js";
import { describeNumber, ValidationError } from "../errors.js";
import { DurableActor } from "../kernel/actor.js";
import { type Clock, systemClock } from "../kernel/clock.js";
import { type Ids, randomIds } from "../kernel/ids.js";
import { type Logger, silentLogger } from "../kernel/logger.js";
import { type InspectionEvent, initialSnapshot, type LiveActor, step } from "../kernel/xstate.js";
import { defaultLimits, type Limits, PAGE_MAX } from "../limits.js";
import type { Environment } from "../sessions/environment.js";
import { activeSessionsPrefix } from "../sessions/records.js";
import type { StateStore } from "../store/port.js";
import { type CloseReport, drain } from "./drain.js";
import { blobsOf, openStore } from "./open.js";
import { Registry } from "./registry.js";
import { Sessions } from "./sessions.js";

export interface SupervisorOptions {
  /** The directory of an embedded store, or a store. A store that is given is not closed. */
  readonly store: string | StateStore;
  /**
   * Where images are kept. Default: files in the directory of an embedded store, or memory that is
   * shared by all supervisors over one store object.
   */
  readonly blobs?: BlobStore;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** pino's form: `warn({ sessionId }, "message")`. Silent where none is given. */
  readonly logger?: Logger;
  /** Receives XState's inspection events of every actor. */
  readonly inspect?: (event: InspectionEvent) => void;
  /** 0 ≤ n < 1. Spreads pauses; given in seeded runs. */
  readonly random?: () => number;
}

export interface CloseOptions {
  /** `drain` lets turns in progress end; `cancel-and-drain` cuts them off. Default `drain`. */
  readonly mode?: CloseMode;
  /** Default `limits.closeMs`. */
  readonly timeoutMs?: number;
}

export class Supervisor implements AsyncDisposable {
  readonly sessions: Sessions;
  readonly #environment: Environment;
  readonly #registry: Registry;
  readonly #ownsStore: boolean;
  readonly #actor: DurableActor<typeof supervisorMachine>;
  #closing: Promise<CloseReport> | undefined;
  #report: CloseReport | undefined;

  private constructor(environment: Environment, ownsStore: boolean) {
    this.#environment = environment;
    this.#ownsStore = ownsStore;
    this.#registry = new Registry(environment);
    this.sessions = new Sessions(environment, this.#registry);
    const supervisorId = environment.ids.next(environment.clock.nowMs());
    this.#actor = new DurableActor({
      id: `supervisor/${supervisorId}`,
      machine: supervisorMachine,
      snapshot: initialSnapshot(supervisorMachine, { supervisorId }),
      watch: environment.watch,
    });
  }

  /**
   * Opens a store and everything over it. Sessions come to life when they are opened; what holds
   * unfinished work is in `sessions.active()`.
   * @throws ValidationError | StoreLocked | StoreUnavailable | CorruptionError nothing was changed
   */
  static async open(options: SupervisorOptions): Promise<Supervisor> {
    const limits = requireLimits(options.limits ?? {});
    const logger = options.logger ?? silentLogger;
    const ownsStore = typeof options.store === "string";
    const store =
      typeof options.store === "string" ? await openStore(options.store) : options.store;
    const supervisor = new Supervisor(
      {
        store,
        blobs: options.blobs ?? blobsOf(options.store),
        limits,
        logger,
        clock: options.clock ?? systemClock,
        ids: options.ids ?? randomIds(),
        random: options.random ?? Math.random,
        watch: {
          onForeignEvent: (actorId, event) =>
            logger.warn({ actorId, event }, "an event sent past the supervisor changed nothing"),
          inspect: options.inspect,
        },
      },
      ownsStore,
    );
    try {
      // The adapter has checked identity and format by now; the first read proves it can be read.
      supervisor.#move({ type: "store.opened" });
      supervisor.#move({ type: "store.verified" });
      await store.list({ prefix: activeSessionsPrefix, limit: PAGE_MAX });
      supervisor.#move({ type: "sessions.recovered" });
    } catch (error) {
      if (ownsStore) await store.close();
      throw error;
    }
    return supervisor;
  }

  /** Where this supervisor stands: `serving`, `draining`, `failed`, `closed`. */
  state(): string {
    return this.#actor.state;
  }

  /** The live XState actor of the supervisor. */
  get actor(): LiveActor<typeof supervisorMachine> {
    return this.#actor.ref;
  }

  /** The store, for tools that look at it. */
  get store(): StateStore {
    return this.#environment.store;
  }

  /**
   * Takes no new work, ends what is in progress and lets go of the store. Can be called again, also
   * after it has left something; what is written stays written whatever happens here.
   */
  async close(options: CloseOptions = {}): Promise<CloseReport> {
    if (this.#report !== undefined) return this.#report;
    this.#registry.close("supervisor");
    // A second call waits for the first and then looks again, perhaps with less patience.
    const before = this.#closing;
    const closing = (async () => {
      await before?.catch(() => undefined);
      return this.#report ?? this.#close(options);
    })();
    this.#closing = closing;
    return closing;
  }

  async #close({ mode = "drain", timeoutMs }: CloseOptions): Promise<CloseReport> {
    const { clock, limits, store } = this.#environment;
    this.#move({ type: "close", mode });
    const deadlineMs = clock.nowMs() + (timeoutMs ?? limits.closeMs);
    const joined = await drain(this.#registry, this.#environment, { mode, deadlineMs });
    if (joined.left.length > 0 && mode === "drain") {
      this.#move({ type: "work.left" });
      return { ...joined, isClosed: false };
    }
    if (this.#ownsStore) await store.close();
    this.#move({ type: "work.joined" });
    this.#report = { ...joined, isClosed: true };
    return this.#report;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const report = await this.close();
    if (!report.isClosed) await this.close({ mode: "cancel-and-drain" });
  }

  /** The supervisor's own states belong to the process: a move is planned and published, not stored. */
  #move(event: SupervisorEvent): void {
    const taken = step(supervisorMachine, this.#actor.snapshot, event);
    if (taken.accepted) this.#actor.adopt(event, taken.snapshot);
  }
}

function requireLimits(given: Partial<Limits>): Limits {
  const issues = Object.entries(given).flatMap(([name, value]) => {
    if (!(name in defaultLimits)) {
      return [
        { path: `/${name}`, found: "unknown", expected: Object.keys(defaultLimits).join(", ") },
      ];
    }
    return Number.isSafeInteger(value) && (value as number) >= 0
      ? []
      : [
          {
            path: `/${name}`,
            found: describeNumber(value),
            expected: "a whole number of at least 0",
          },
        ];
  });
  if (issues.length > 0) throw new ValidationError("limits", issues);
  return { ...defaultLimits, ...given };
}
