/**
 * Every limit of the library in one place, each with its unit and default. A limit that is met
 * surfaces as a typed error that names it; nothing is dropped silently. Imports nothing.
 */

/** Limits of one supervisor. All of them can be lowered or raised through `Supervisor.open`. */
export interface Limits {
  /** Failed tries of one input before it is abandoned with `maxAttemptsExhausted`. */
  readonly attemptsPerInputMax: number;
  /** Inputs of one session that wait or run; one more gets a `CapacityError`. */
  readonly queueInputsMax: number;
  /** Idempotency keys of ended inputs kept for one session, oldest out first. */
  readonly endedKeysMax: number;
  /** Time for which the idempotency key of an ended input is kept, in milliseconds. */
  readonly endedKeyAgeMaxMs: number;
  /** Moves kept in the journal of one owner. */
  readonly journalMovesMax: number;
  /** Payload of one input as JSON text, in bytes of UTF-8. */
  readonly payloadBytesMax: number;
  /** One image of an input, in bytes. It is kept as a blob, outside the payload. */
  readonly blobBytesMax: number;
  /** Time after which a staged turn that has not begun is reported, in milliseconds. */
  readonly turnStartNoticeMs: number;
  /** Time after which the inputs of a turn that has not begun are abandoned, in milliseconds. */
  readonly turnStartMaxMs: number;
  /** Time an executor gets to return after its turn was cancelled, in milliseconds. */
  readonly cancelGraceMs: number;
  /** First and largest pause before a failed turn is tried again, in milliseconds. */
  readonly retryPauseMinMs: number;
  readonly retryPauseMaxMs: number;
  /** Time without work after which a session's actor leaves memory, in milliseconds. */
  readonly idleMs: number;
  /** Restarts of one actor within `restartWindowMs` before backoff begins. */
  readonly restartsMax: number;
  readonly restartWindowMs: number;
  /** Time that `close` waits for turns by default, in milliseconds. */
  readonly closeMs: number;
}

export const defaultLimits: Limits = Object.freeze({
  attemptsPerInputMax: 3,
  queueInputsMax: 4_096,
  endedKeysMax: 4_096,
  endedKeyAgeMaxMs: 24 * 60 * 60 * 1_000,
  journalMovesMax: 1_000,
  payloadBytesMax: 256 * 1_024,
  blobBytesMax: 64 * 1_024 * 1_024,
  turnStartNoticeMs: 120_000,
  turnStartMaxMs: 60 * 60 * 1_000,
  cancelGraceMs: 10_000,
  retryPauseMinMs: 100,
  retryPauseMaxMs: 30_000,
  idleMs: 60_000,
  restartsMax: 3,
  restartWindowMs: 60_000,
  closeMs: 30_000,
});

/** Bytes of UTF-8 in one id or key segment. Part of the stored format, so it is not configurable. */
export const ID_BYTES_MAX = 512;

/** Records in one page of any listing. Part of the port, so it is not configurable. */
export const PAGE_MAX = 256;

/** Depth of nesting in a stored JSON value. */
export const JSON_DEPTH_MAX = 512;

/** Tries of a read that conflicts before it answers `BusyError`. */
export const READ_CONFLICT_TRIES_MAX = 8;

/** Tries of an owner's store call that is unavailable before the owner fails closed. */
export const OWNER_UNAVAILABLE_TRIES_MAX = 6;
