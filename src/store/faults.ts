/** What a failing store can be told: which calls to strike, with what, and what comes back of it. */
import type { Key, OperationId, StateStore } from "./port.js";

/** `txLoad` is `load` of a transaction. */
export type StoreOperation = "load" | "list" | "claim" | "begin" | "txLoad" | "commit" | "rollback";

export interface StoreCall {
  readonly operation: StoreOperation;
  /** Counts the calls of this operation from 1. */
  readonly index: number;
  /** What is read, listed below, claimed or written. */
  readonly keys: readonly Key[];
  /** The operation id of the transaction, where it was given one. */
  readonly operationId: OperationId | undefined;
}

/**
 * - `unavailableBefore`: StoreUnavailable, nothing done.
 * - `unavailableAfter`: done, then StoreUnavailable: the acknowledgement is lost.
 * - `conflict`: a commit is refused, nothing done.
 * - `fenced`: somebody claims the owner just before the commit.
 * - `serialization`: StoreSerialization, nothing done.
 * - `crashBefore`, `crashAfter`: the call never answers, undone or done; every later call is
 *   refused and recorded; the store inside stays open for whoever comes next.
 * - `shortPage`: a page of one record, with `next`.
 */
export type Fault =
  | "unavailableBefore"
  | "unavailableAfter"
  | "conflict"
  | "fenced"
  | "serialization"
  | "crashBefore"
  | "crashAfter"
  | "shortPage";

export interface CallFilter {
  readonly on: StoreOperation | readonly StoreOperation[];
  /** Every call of these operations, where it is left out. */
  readonly when?: (call: StoreCall) => boolean;
  /** How many calls it strikes. Default 1. */
  readonly times?: number;
}

export interface FaultRule extends CallFilter {
  readonly fault: Fault;
}

export interface HoldRule extends CallFilter {
  /** Held before anything is done, or done and then held. Default "before". */
  readonly point?: "before" | "after";
}

/** A fault in place. */
export interface Injection {
  /** The calls it struck, in order. */
  readonly struck: readonly StoreCall[];
  remove(): void;
}

/** Calls that wait until the test lets them go. */
export interface Gate extends Injection {
  /** Resolves when the first call is held. */
  readonly reached: Promise<StoreCall>;
  /** Lets go of what is held, and of what comes later. */
  release(): void;
}

export interface FailingStore extends StateStore {
  readonly inner: StateStore;
  /** Calls so far, by operation. */
  readonly counts: Readonly<Record<StoreOperation, number>>;
  /** Calls struck by faults, in order. */
  readonly struck: readonly StoreCall[];
  /** Calls that came after a crash. */
  readonly refused: readonly StoreCall[];
  readonly isCrashed: boolean;
  /** Resolves with the call that a crash struck. */
  readonly crashed: Promise<StoreCall>;
  inject(rule: FaultRule): Injection;
  hold(rule: HoldRule): Gate;
  /** Takes all faults away and lets go of what is held. */
  heal(): void;
  /** @throws AssertionError a fault that was injected struck no call */
  requireStruck(): void;
}
