/**
 * The closed set of errors that cross the public face. Every one carries `_tag` (for `switch` and
 * Effect's `catchTag`), a stable `code`, `retryable`, the ids it is about as fields and its
 * `cause`. Two copies of the package recognise each other's errors by `_tag`, so compare tags, not
 * classes. Messages name what could not be done, to what, and what to do; never a payload.
 */

/** An id as it is shown in messages: quoted, control characters escaped, shortened past 80 characters. */
export function show(id: string): string {
  return escapeControls(JSON.stringify(id.length > 80 ? `${id.slice(0, 77)}...` : id));
}

/** A JSON pointer as it is safe to print: one line without control characters, shortened. */
export function showPath(path: string): string {
  if (path === "") return "value";
  // Nothing is cut off before it is escaped but what would be cut off anyway.
  const text = escapeControls(JSON.stringify(path.slice(0, PATH_SHOWN_MAX)).slice(1, -1));
  const isWhole = path.length <= PATH_SHOWN_MAX && text.length <= PATH_SHOWN_MAX;
  return isWhole ? text : `${text.slice(0, PATH_SHOWN_MAX - 3).toWellFormed()}...`;
}

const PATH_SHOWN_MAX = 400;

function escapeControls(text: string): string {
  return text.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** What kind of value this is, for a message that must not tell the value. */
export function describeKind(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (value === "") return "an empty string";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** A number as it is, of anything else its kind: for a message about a setting. */
export function describeNumber(value: unknown): string {
  return typeof value === "number" ? String(value) : describeKind(value);
}

/** Base of all errors of this library. */
export abstract class HoldfastError extends Error {
  abstract readonly _tag: string;
  abstract readonly code: string;
  /** Whether the same call may succeed later without a change by the caller. */
  readonly retryable: boolean = false;

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
  }
}

/** True for errors of this library, also of another copy of it. */
export function isHoldfastError(error: unknown): error is HoldfastError {
  return (
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "string" &&
    error.code.startsWith("HOLDFAST_")
  );
}

/** One fault in a value from outside. `path` is a JSON pointer into what was given. */
export interface ValidationIssue {
  readonly path: string;
  readonly found: string;
  readonly expected: string;
}

/** What the caller gave is not acceptable; nothing was written. */
export class ValidationError extends HoldfastError {
  readonly _tag = "ValidationError";
  readonly code = "HOLDFAST_VALIDATION";
  constructor(
    readonly subject: string,
    readonly issues: readonly ValidationIssue[],
  ) {
    super(
      `The ${subject} is not valid: ${issues
        .map((i) => `${showPath(i.path)} is ${i.found}, expected ${i.expected}`)
        .join("; ")}.`,
    );
  }
}

/** The supervisor or handle is closed, or the thing it names is being deleted. */
export class ClosedError extends HoldfastError {
  readonly _tag = "ClosedError";
  readonly code = "HOLDFAST_CLOSED";
  constructor(
    readonly subject: string,
    cause?: unknown,
  ) {
    super(`The ${subject} is closed. Open it again before use.`, cause);
  }
}

export class NotFoundError extends HoldfastError {
  readonly _tag = "NotFoundError";
  readonly code = "HOLDFAST_NOT_FOUND";
  constructor(
    readonly kind: string,
    readonly id: string,
  ) {
    super(`No ${kind} ${show(id)} exists in this store. Check the id, or list what exists.`);
  }
}

/** Somebody else moved the thing first; read it again and decide anew. */
export class ConflictError extends HoldfastError {
  readonly _tag = "ConflictError";
  readonly code = "HOLDFAST_CONFLICT";
  constructor(
    readonly subject: string,
    readonly id: string,
    reason: string,
    cause?: unknown,
  ) {
    super(`The ${subject} ${show(id)} cannot be changed: ${reason}.`, cause);
  }
}

/** Reads kept colliding with writers; the store is healthy. */
export class BusyError extends HoldfastError {
  readonly _tag = "BusyError";
  readonly code = "HOLDFAST_BUSY";
  override readonly retryable = true;
  constructor(
    readonly subject: string,
    readonly tries: number,
    cause?: unknown,
  ) {
    super(`The ${subject} changed during each of ${tries} reads. Try again.`, cause);
  }
}

/** What helps a call that found a session in this state. */
const NEXT_STEP: Readonly<Record<string, string | undefined>> = {
  running: "Wait for its turn to end, or cancel it.",
  retired: "Reset it to take new inputs.",
};

/** The session is in a state that does not take this call. `destroyed` also means: not registered. */
export class NotReadyError extends HoldfastError {
  readonly _tag = "NotReadyError";
  readonly code = "HOLDFAST_NOT_READY";
  constructor(
    readonly sessionId: string,
    readonly state: string,
    readonly operation: string,
  ) {
    super(
      `Session ${show(sessionId)} cannot ${operation} while it is ${state}. ${
        NEXT_STEP[state] ?? "Open the session again before use."
      }`,
    );
  }
}

export class DestroyedError extends HoldfastError {
  readonly _tag = "DestroyedError";
  readonly code = "HOLDFAST_DESTROYED";
  constructor(
    readonly sessionId: string,
    readonly operation: string,
  ) {
    super(
      `Session ${show(sessionId)} was destroyed and cannot ${operation}. Use a session with another id.`,
    );
  }
}

/** One idempotency key was used for two different payloads. */
export class IdempotencyConflictError extends HoldfastError {
  readonly _tag = "IdempotencyConflictError";
  readonly code = "HOLDFAST_IDEMPOTENCY_CONFLICT";
  constructor(
    readonly sessionId: string,
    readonly idempotencyKey: string,
    readonly existingId: string,
  ) {
    super(
      `Session ${show(sessionId)} already took idempotency key ${show(idempotencyKey)} with another payload, as ${show(existingId)}. Use a new key for what is new.`,
    );
  }
}

export class CapacityError extends HoldfastError {
  readonly _tag = "CapacityError";
  readonly code = "HOLDFAST_CAPACITY";
  override readonly retryable = true;
  constructor(
    readonly sessionId: string,
    readonly limit: string,
    readonly limitValue: number,
  ) {
    super(
      `Session ${show(sessionId)} already holds ${limitValue} unfinished inputs. Wait for one to end, or raise limits.${limit}.`,
    );
  }
}

/** The store contradicts itself. Permanent until somebody looks; nothing was changed. */
export class CorruptionError extends HoldfastError {
  readonly _tag = "CorruptionError";
  readonly code = "HOLDFAST_CORRUPTION";
  /** Where the fault is: a file with an offset, or a record key. */
  constructor(
    readonly where: string,
    readonly found: string,
    readonly advice = "Keep a copy of the data, then run `holdfast store verify`.",
    cause?: unknown,
  ) {
    super(`${where}: ${found}. ${advice}`, cause);
  }
}

export class SessionIdMismatchError extends HoldfastError {
  readonly _tag = "SessionIdMismatchError";
  readonly code = "HOLDFAST_SESSION_ID_MISMATCH";
  constructor(
    readonly expected: string,
    readonly actual: string,
  ) {
    super(
      `The session service answered with session ${show(actual)} where ${show(expected)} was prepared. Create the session under the prepared id.`,
    );
  }
}

/** Why a chart refused an event. */
export type RefusalReason = "illegalTransition" | "terminalState" | "guardFailed";

/** A chart does not accept this event in its present state. Nothing was changed. */
export class TransitionError extends HoldfastError {
  readonly _tag = "TransitionError";
  readonly code = "HOLDFAST_TRANSITION";
  constructor(
    readonly actor: string,
    readonly state: string,
    readonly event: string,
    readonly reason: RefusalReason,
  ) {
    super(
      `Actor ${show(actor)} in state ${state} refuses the event ${show(event)}: ${
        reason === "terminalState"
          ? "the state is final"
          : reason === "guardFailed"
            ? "its condition does not hold"
            : "no transition is defined for it"
      }.`,
    );
  }
}

/** An operation of a session did not commit; memory and store are as before. */
export class OperationError extends HoldfastError {
  readonly _tag = "OperationError";
  readonly code = "HOLDFAST_OPERATION";
  /** As of its cause: a session that is fenced or unreadable stays so. */
  override readonly retryable: boolean;
  constructor(
    readonly operation: string,
    readonly sessionId: string,
    cause: unknown,
  ) {
    super(
      `Session ${show(sessionId)} could not ${operation}: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    );
    this.retryable = isHoldfastError(cause) && cause.retryable;
  }
}

/** A turn's program or function failed. */
export class ExecutorError extends HoldfastError {
  readonly _tag = "ExecutorError";
  readonly code = "HOLDFAST_EXECUTOR";
  constructor(
    readonly reason: string,
    readonly details: {
      readonly exitCode?: number | null;
      readonly signal?: string | null;
      readonly stderr?: string;
    } = {},
    cause?: unknown,
  ) {
    super(`The executor failed: ${reason}.`, cause);
  }
}

/** Base of the five store errors; the class says what the caller may conclude. */
export abstract class StoreError extends HoldfastError {}

/** The outcome is unknown, or the call was not done. Look for the operation id before a retry. */
export class StoreUnavailable extends StoreError {
  readonly _tag = "StoreUnavailable";
  readonly code = "HOLDFAST_STORE_UNAVAILABLE";
  override readonly retryable = true;
  constructor(
    readonly operation: string,
    readonly reason: string,
    cause?: unknown,
  ) {
    super(`The store could not ${operation}: ${reason}.`, cause);
  }
}

/** Certainly not applied: something read or expected has moved. Begin again. */
export class StoreConflict extends StoreError {
  readonly _tag = "StoreConflict";
  readonly code = "HOLDFAST_STORE_CONFLICT";
  override readonly retryable = true;
  constructor(
    readonly key: string,
    readonly reason: string,
  ) {
    super(`The store refused a commit: ${key} ${reason}. Begin a new transaction.`);
  }
}

/** Certainly not applied: another owner has claimed since. Stop; a retry never helps. */
export class StoreFenced extends StoreError {
  readonly _tag = "StoreFenced";
  readonly code = "HOLDFAST_STORE_FENCED";
  constructor(
    readonly owner: string,
    readonly epoch: number,
    readonly currentEpoch: number,
  ) {
    super(
      `The lease on ${owner} with epoch ${epoch} is over, epoch ${currentEpoch} holds it. Stop writing for this owner.`,
    );
  }
}

/** What is stored, or what was to be stored, is not a record. Permanent; a retry never helps. */
export class StoreSerialization extends StoreError {
  readonly _tag = "StoreSerialization";
  readonly code = "HOLDFAST_STORE_SERIALIZATION";
  constructor(
    readonly key: string,
    readonly reason: string,
    cause?: unknown,
  ) {
    super(`The record ${key} is unreadable: ${reason}. Run \`holdfast store verify\`.`, cause);
  }
}

/** Another process, or another handle of this one, has the store. */
export class StoreLocked extends StoreError {
  readonly _tag = "StoreLocked";
  readonly code = "HOLDFAST_STORE_LOCKED";
  override readonly retryable = true;
  constructor(
    readonly path: string,
    readonly holder: string,
    cause?: unknown,
  ) {
    super(
      `The store at ${path} is in use by ${holder}. Stop that process or use another directory; do not delete the LOCK file, it protects the data.`,
      cause,
    );
  }
}

/** A broken promise of our own code. The owner concerned is parked and visible. */
export class AssertionError extends HoldfastError {
  readonly _tag = "AssertionError";
  readonly code = "HOLDFAST_ASSERTION";
  constructor(readonly what: string) {
    super(`An internal promise does not hold: ${what}. Please report this as a bug.`);
  }
}

export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new AssertionError(what);
}
