/**
 * The handle of a session: what an app holds. It is an observer with a name, not an owner: dropping
 * it changes nothing, and it finds the session's runtime again after the runtime left memory.
 */
import type { SessionContext, sessionMachine } from "../../machines/session.js";
import { NotFoundError, NotReadyError, ValidationError } from "../errors.js";
import type { LiveActor } from "../kernel/xstate.js";
import { PAGE_MAX } from "../limits.js";
import type { JsonObject, StateStore, StoredRecord } from "../store/port.js";
import { type Admission, accept, parseRequest } from "./admission.js";
import type { Completion } from "./completion.js";
import { appendContext, type ContextReceipt, type ContextRequest } from "./context.js";
import type { Environment } from "./environment.js";
import type { InputRequest, InputView } from "./input.js";
import { viewOf } from "./live-input.js";
import {
  type AbandonReport,
  destroy,
  type RecycleReport,
  type RetireReport,
  recycle,
  reset,
  retire,
  stop,
} from "./operations.js";
import { requireId } from "./parse-input.js";
import {
  type BoundaryReceipt,
  decodeInput,
  decodeSession,
  hasEnded,
  isForgotten,
  keys,
  type TranscriptEntry,
} from "./records.js";
import type { SessionRuntime } from "./runtime.js";
import { storedCompletion } from "./stored-completion.js";
import { cancelTurn } from "./turns.js";

/** Finds the runtime of a session, bringing it to life where it left memory. */
export interface RuntimeSource {
  readonly environment: Environment;
  /** The runtime if it is in memory. */
  peek(id: string): SessionRuntime | undefined;
  runtime(id: string): Promise<SessionRuntime>;
  unregister(id: string): Promise<void>;
  keepAlive(id: string, isKept: boolean): void;
  /** As `runtime`, and a session that is only stored is brought to life, without an executor. */
  rebuilt(id: string): Promise<SessionRuntime>;
}

export interface SessionView {
  readonly id: string;
  readonly state: string;
  readonly turnId: string | null;
  readonly inputs: { readonly admitted: number; readonly unfinished: number };
  readonly messages: number;
  /** Identifies the conversation so far; see `docs/format.md`. */
  readonly digest: string;
  readonly metadata: JsonObject;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Where to go on, or `undefined` at the end. A short page is not the end. */
  readonly next: number | undefined;
}

export interface InputFilter {
  readonly phase?: string;
  /** Only inputs after this sequence. */
  readonly after?: number;
  /** 1 to 256, 100 where none is given. */
  readonly limit?: number;
}

export interface TranscriptItem extends TranscriptEntry {
  readonly sequence: number;
}

const PAGE_DEFAULT = 100;

export class Session {
  readonly id: string;
  readonly #source: RuntimeSource;

  constructor(id: string, source: RuntimeSource) {
    this.id = id;
    this.#source = source;
  }

  /**
   * Takes one input, durably. See `Admission` for the outcomes.
   * @throws ValidationError the input is not acceptable; nothing was written
   * @throws NotReadyError | DestroyedError the session takes no inputs in its state
   * @throws IdempotencyConflictError the key belongs to another payload
   * @throws CapacityError the session holds as many unfinished inputs as it may
   * @throws OperationError the store failed; nothing was written, send it again
   */
  async accept(
    request: InputRequest,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Admission> {
    // Read before anything is awaited: the caller may change its objects afterwards.
    const parsed = parseRequest(request, this.#source.environment);
    return accept(await this.#source.runtime(this.id), parsed, options.signal);
  }

  /** The runtime's state right now: `idle`, `attached`, `running`, … `destroyed` when it is not registered. */
  state(): string {
    return this.#source.peek(this.id)?.state.actor.state ?? "destroyed";
  }

  /** The live XState actor of the session, to look at and subscribe to. */
  async actor(): Promise<LiveActor<typeof sessionMachine>> {
    return (await this.#source.runtime(this.id)).state.actor.ref;
  }

  /** @throws NotFoundError */
  async snapshot(): Promise<SessionView> {
    return loadSession(this.#source.environment.store, this.id);
  }

  /** One input, or `undefined` where this session does not know it. */
  async input(inputId: string): Promise<InputView | undefined> {
    requireId(inputId, "input id");
    const live = this.#source.peek(this.id)?.state.inputs.get(inputId);
    if (live !== undefined) return live.view();
    const record = await this.#inputRecord(inputId);
    return record === undefined ? undefined : viewOf(decodeInput(record));
  }

  /** Inputs in the order of their admission. */
  inputs(filter: InputFilter = {}): Promise<Page<InputView>> {
    return listInputs(this.#source.environment.store, this.id, filter);
  }

  /**
   * How an input ends, or how its next attempt does; for an ended input, how it ended.
   * @throws NotFoundError this session does not know the input
   * @throws NotReadyError the input has not ended, and the session is not open to go on with it
   */
  async completion(inputId: string): Promise<Completion> {
    requireId(inputId, "input id");
    const state = this.#source.peek(this.id)?.state;
    const waiter = state?.inputs.get(inputId)?.waiter ?? state?.turn?.deferred.get(inputId);
    if (waiter !== undefined) return waiter.promise;
    const record = await this.#inputRecord(inputId);
    if (record === undefined) throw new NotFoundError("input", inputId);
    const input = decodeInput(record);
    if (hasEnded(input)) {
      const { store } = this.#source.environment;
      return storedCompletion((key) => store.load(key), this.id, input);
    }
    // It was read just before it ended, or while the session was out of memory.
    await this.#source.runtime(this.id);
    return this.completion(inputId);
  }

  /** The proof of one boundary, or `undefined`. */
  async receipt(turnId: string, sequence: number): Promise<BoundaryReceipt | undefined> {
    requireId(turnId, "turn id");
    const record = await this.#source.environment.store.load(
      keys.receipt(this.id, turnId, sequence),
    );
    return record?.value as BoundaryReceipt | undefined;
  }

  /** The conversation, boundary by boundary. */
  async transcript(
    request: { readonly after?: number; readonly limit?: number } = {},
  ): Promise<Page<TranscriptItem>> {
    const page = await this.#source.environment.store.list({
      prefix: keys.transcript(this.id),
      after: request.after === undefined ? undefined : keys.transcriptEntry(this.id, request.after),
      limit: requireLimit(request.limit),
    });
    return {
      items: page.records.map((record) => ({
        sequence: Number(record.key.at(-1)),
        ...(record.value as unknown as TranscriptEntry),
      })),
      next: page.next === undefined ? undefined : Number(page.next.at(-1)),
    };
  }

  /**
   * Adds context of the host to the conversation, as a system message. A session that is only stored
   * is brought to life for it.
   * @throws ValidationError | NotFoundError | IdempotencyConflictError | NotReadyError | OperationError
   */
  async appendContext(request: ContextRequest): Promise<ContextReceipt> {
    return appendContext(await this.#source.rebuilt(this.id), request);
  }

  /** Says whether the session stays in memory for its peers; its metadata is not touched. */
  configureIngress({ keepAlive }: { readonly keepAlive: boolean }): void {
    this.#source.keepAlive(this.id, keepAlive);
  }

  /**
   * Cancels the turn in progress: its inputs are given up, its executor's signal is aborted.
   * @throws NotReadyError no turn is in progress
   */
  async cancelTurn(): Promise<void> {
    const runtime = await this.#source.runtime(this.id);
    await runtime.operation("cancel a turn", async () => {
      const { turn, actor } = runtime.state;
      if (turn === null || turn.hasEnded) {
        throw new NotReadyError(this.id, actor.state, "cancel a turn");
      }
      await cancelTurn(runtime, turn);
    });
  }

  /**
   * Takes no new input from here on. What waits drains where an executor is bound, else it is given
   * up. Asking again changes nothing.
   * @throws NotReadyError | DestroyedError | OperationError
   */
  async retire(): Promise<RetireReport> {
    return retire(await this.#source.runtime(this.id));
  }

  /**
   * Gives all inputs up and takes a retired session back into service.
   * @throws NotReadyError a turn is in progress
   */
  async reset(): Promise<AbandonReport> {
    return reset(await this.#source.runtime(this.id));
  }

  /**
   * Builds the lanes again from the stored rows and takes a retired session back into service.
   * @throws NotReadyError a turn is in progress | CorruptionError the rows contradict themselves
   */
  async recycle(): Promise<RecycleReport> {
    return recycle(await this.#source.runtime(this.id));
  }

  /** Gives all inputs up, cuts a turn off and stops the executor. `sessions.open` takes it back. */
  async stop(): Promise<AbandonReport> {
    return stop(await this.#source.runtime(this.id));
  }

  /** The end of the session: gives all inputs up and leaves the registry. Its rows stay. */
  async destroy(): Promise<AbandonReport> {
    return destroy(await this.#source.runtime(this.id));
  }

  /**
   * Takes the session out of this supervisor: a turn in progress may still commit, no other begins,
   * then calls answer as for a session that is not there. Inputs stay as they are in the store.
   * Without effect where it is not registered.
   */
  unregister(): Promise<void> {
    return this.#source.unregister(this.id);
  }

  async #inputRecord(inputId: string): Promise<StoredRecord | undefined> {
    const { store } = this.#source.environment;
    const index = await store.load(keys.inputId(this.id, inputId));
    if (index === undefined) return undefined;
    const { sequence } = index.value as { readonly sequence: number };
    return store.load(keys.input(this.id, sequence));
  }
}

/** A session as its record has it. */
export async function loadSession(store: StateStore, id: string): Promise<SessionView> {
  const record = await store.load(keys.session(requireId(id, "session id")));
  if (record === undefined) throw new NotFoundError("session", id);
  return sessionViewOf(record);
}

export function sessionViewOf(record: StoredRecord): SessionView {
  const session = decodeSession(record);
  const context = session.snapshot.context as unknown as SessionContext;
  const { ledger } = session;
  return {
    id: context.sessionId,
    state: String(session.snapshot.value),
    turnId: context.turnId,
    inputs: { admitted: ledger.nextInput, unfinished: ledger.unfinished },
    messages: ledger.messages,
    digest: ledger.digest,
    metadata: session.metadata,
    createdAt: session.createdAt,
    updatedAt: session.updatedAt,
  };
}

export async function listInputs(
  store: StateStore,
  id: string,
  filter: InputFilter,
): Promise<Page<InputView>> {
  const limit = requireLimit(filter.limit);
  const page = await store.list({
    prefix: keys.inputs(requireId(id, "session id")),
    after: filter.after === undefined ? undefined : keys.input(id, filter.after),
    limit,
  });
  const items = page.records
    .filter((record) => !isForgotten(record))
    .map((record) => viewOf(decodeInput(record)))
    .filter((view) => filter.phase === undefined || view.phase === filter.phase);
  return { items, next: page.next === undefined ? undefined : Number(page.next.at(-1)) };
}

function requireLimit(limit = PAGE_DEFAULT): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > PAGE_MAX) {
    throw new ValidationError("page request", [
      { path: "/limit", found: String(limit), expected: `a whole number from 1 to ${PAGE_MAX}` },
    ]);
  }
  return limit;
}
