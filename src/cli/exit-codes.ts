/** Exit codes of the command line: one table from classes of errors to numbers. See `docs/cli.md`. */
import { isHoldfastError } from "../errors.js";

export const exitCodes = {
  ok: 0,
  someFailed: 1,
  usage: 2,
  notFound: 3,
  notReady: 4,
  locked: 5,
  unavailable: 6,
  corruption: 7,
  internal: 70,
  hungUp: 129,
  interrupted: 130,
  outputClosed: 141,
  terminated: 143,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

const byTag: Readonly<Record<string, ExitCode>> = {
  ValidationError: exitCodes.usage,
  UsageError: exitCodes.usage,
  NotFoundError: exitCodes.notFound,
  MissingError: exitCodes.notFound,
  BusyError: exitCodes.notReady,
  CapacityError: exitCodes.notReady,
  ClosedError: exitCodes.notReady,
  ConflictError: exitCodes.notReady,
  DestroyedError: exitCodes.notReady,
  IdempotencyConflictError: exitCodes.notReady,
  NotReadyError: exitCodes.notReady,
  SessionIdMismatchError: exitCodes.notReady,
  StoreConflict: exitCodes.notReady,
  TransitionError: exitCodes.notReady,
  ExecutorError: exitCodes.someFailed,
  StoreFenced: exitCodes.locked,
  StoreLocked: exitCodes.locked,
  StoreUnavailable: exitCodes.unavailable,
  CorruptionError: exitCodes.corruption,
  StoreSerialization: exitCodes.corruption,
  AssertionError: exitCodes.internal,
};

/** An operation, or a handle that was closed, fails for the reason in its cause. */
export function exitCodeOf(error: unknown): ExitCode {
  if (!isHoldfastError(error)) return exitCodes.internal;
  const isCarrier = error._tag === "OperationError" || error._tag === "ClosedError";
  if (isCarrier && isHoldfastError(error.cause)) return exitCodeOf(error.cause);
  return byTag[error._tag] ?? exitCodes.internal;
}
