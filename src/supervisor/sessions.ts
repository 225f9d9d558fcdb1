/** The sessions of a supervisor, as apps see them. */
import { ValidationError } from "../errors.js";
import { PAGE_MAX } from "../limits.js";
import type { Environment } from "../sessions/environment.js";
import {
  type InputFilter,
  listInputs,
  loadSession,
  type Page,
  Session,
  type SessionView,
  sessionViewOf,
} from "../sessions/handle.js";
import type { InputView } from "../sessions/input.js";
import type { SessionOptions } from "../sessions/options.js";
import { requireId } from "../sessions/parse-input.js";
import { activeSessionsPrefix, keys, sessionsPrefix } from "../sessions/records.js";
import type { RecoveryReport } from "../sessions/recovery.js";
import { isSchema } from "../sessions/schema.js";
import { checkJson } from "../store/json.js";
import type { Key } from "../store/port.js";
import { type MaterializeOptions, materialize } from "./materialize.js";
import type { Registry } from "./registry.js";

export interface SessionPage {
  readonly items: readonly SessionView[];
  /** The id to go on after, or `undefined` at the end. */
  readonly next: string | undefined;
}

const PAGE_DEFAULT = 100;
/** Sorts after everything that a session keeps below its own record. */
const AFTER_ALL = "~";

export class Sessions {
  readonly #environment: Environment;
  readonly #registry: Registry;

  constructor(environment: Environment, registry: Registry) {
    this.#environment = environment;
    this.#registry = registry;
  }

  /**
   * Opens a session, new or stored, and goes on with the work that it holds. A UUID is made where no
   * id is given. Opening one again with another executor hands the work over to that one.
   * @throws ValidationError | CorruptionError | StoreError | ClosedError
   */
  async open(id?: string, options: SessionOptions = {}): Promise<Session> {
    const { clock, ids } = this.#environment;
    const sessionId = id === undefined ? ids.next(clock.nowMs()) : requireId(id, "session id");
    checkOptions(options);
    await this.#registry.open(sessionId, options);
    return this.#handle(sessionId);
  }

  /** A handle to look at a stored session; it takes inputs only once the session is open. */
  async get(id: string): Promise<Session> {
    this.#registry.requireOpen();
    await loadSession(this.#environment.store, id);
    return this.#handle(id);
  }

  /**
   * Creates a session together with a host's session service, or nothing at all.
   * @throws SessionIdMismatchError | ConflictError | whatever the service or the executor throws
   */
  materialize(options: MaterializeOptions): Promise<Session> {
    return materialize(this, this.#registry, options);
  }

  /** Reads a session's rows and brings it to life without an executor; says what was found. */
  async recover(id: string): Promise<RecoveryReport> {
    const { report } = await this.#registry.open(requireId(id, "session id"), {});
    return report;
  }

  /** Stored sessions in the order of their ids. */
  async list(
    request: { readonly after?: string; readonly limit?: number } = {},
  ): Promise<SessionPage> {
    this.#registry.requireOpen();
    const limit = requireLimit(request.limit);
    const items: SessionView[] = [];
    let last = request.after;
    while (items.length < limit) {
      const after: Key | undefined =
        last === undefined
          ? undefined
          : [...keys.session(requireId(last, "session id")), AFTER_ALL];
      const page = await this.#environment.store.list({ prefix: sessionsPrefix, after, limit: 1 });
      const record = page.records[0];
      if (record === undefined) return { items, next: undefined };
      last = record.key[1];
      // Rows without a session record belong to a session that was never opened here.
      if (record.key.length === sessionsPrefix.length + 1) items.push(sessionViewOf(record));
    }
    return { items, next: last };
  }

  /** Ids of sessions that hold unfinished inputs: what to open after a restart. */
  async active(
    request: { readonly after?: string; readonly limit?: number } = {},
  ): Promise<{ readonly ids: readonly string[]; readonly next: string | undefined }> {
    this.#registry.requireOpen();
    const page = await this.#environment.store.list({
      prefix: activeSessionsPrefix,
      after: request.after === undefined ? undefined : keys.active(request.after),
      limit: requireLimit(request.limit),
    });
    return {
      ids: page.records.map((record) => record.key[1] ?? ""),
      next: page.next?.[1],
    };
  }

  inputs(id: string, filter: InputFilter = {}): Promise<Page<InputView>> {
    this.#registry.requireOpen();
    return listInputs(this.#environment.store, id, filter);
  }

  #handle(id: string): Session {
    const registry = this.#registry;
    return new Session(id, {
      environment: this.#environment,
      peek: (sessionId) => registry.peek(sessionId),
      runtime: (sessionId) => registry.runtime(sessionId),
      unregister: (sessionId) => registry.unregister(sessionId),
      keepAlive: (sessionId, isKept) => registry.keepAlive(sessionId, isKept),
      rebuilt: async (sessionId) => {
        if (!registry.has(sessionId)) {
          await loadSession(this.#environment.store, sessionId);
          await registry.open(sessionId, {});
        }
        return registry.runtime(sessionId);
      },
    });
  }
}

function checkOptions({ executor, metadata, silentIntents, schemas }: SessionOptions): void {
  const isExecutor =
    executor === undefined ||
    typeof executor === "function" ||
    (typeof executor === "object" && executor !== null && typeof executor.apply === "function");
  if (!isExecutor) {
    throw new ValidationError("session options", [
      {
        path: "/executor",
        found: typeof executor,
        expected: "an executor, or a function that makes one",
      },
    ]);
  }
  for (const [name, schema] of Object.entries(schemas ?? {})) {
    if (schema === undefined || isSchema(schema)) continue;
    throw new ValidationError("session options", [
      { path: `/schemas/${name}`, found: typeof schema, expected: "a Standard Schema" },
    ]);
  }
  checkJson({ metadata: metadata ?? {}, silentIntents: silentIntents ?? [] });
}

function requireLimit(limit = PAGE_DEFAULT): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > PAGE_MAX) {
    throw new ValidationError("page request", [
      { path: "/limit", found: String(limit), expected: `a whole number from 1 to ${PAGE_MAX}` },
    ]);
  }
  return limit;
}
