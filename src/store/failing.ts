/**
 * A store that fails on demand: wraps any store and lets chosen calls fail, hang or die, in every
 * way in which a real one can. For tests; it changes nothing unless it is told to.
 *
 *     const store = failingStore(memoryStore());
 *     store.inject({ on: "commit", when: (call) => call.index === 3, fault: "unavailableAfter" });
 *     …
 *     store.requireStruck();
 */
import {
  assert,
  ClosedError,
  StoreConflict,
  StoreFenced,
  StoreSerialization,
  StoreUnavailable,
  ValidationError,
} from "../errors.js";
import { hasRawRows, rawRows } from "./backend.js";
import type {
  CallFilter,
  FailingStore,
  Fault,
  FaultRule,
  Gate,
  HoldRule,
  Injection,
  StoreCall,
  StoreOperation,
} from "./faults.js";
import { showKey } from "./keys.js";
import type {
  BeginOptions,
  JsonValue,
  Key,
  Lease,
  ListRequest,
  OperationId,
  OwnerId,
  RecordPage,
  Revision,
  StateStore,
  StateTransaction,
  StoredRecord,
} from "./port.js";

/** Every operation, in the words of messages. */
const DEEDS: Readonly<Record<StoreOperation, string>> = {
  load: "load a record",
  list: "list records",
  claim: "claim an owner",
  begin: "begin a transaction",
  txLoad: "load a record",
  commit: "commit",
  rollback: "roll back",
};

/** Wraps a store. Faults are tried in the order in which they were injected; one strikes a call. */
export function failingStore(inner: StateStore): FailingStore {
  const store = new Failing(inner);
  if (!hasRawRows(inner)) return store;
  return Object.assign(store, { [rawRows]: () => inner[rawRows]() });
}

interface Placed {
  readonly rule: CallFilter;
  readonly struck: StoreCall[];
}

interface PlacedFault extends Placed {
  readonly rule: FaultRule;
}

interface PlacedGate extends Placed {
  readonly rule: HoldRule;
  readonly opened: Promise<void>;
  readonly onReached: (call: StoreCall) => void;
}

/** What a call does, with the parts that only some faults need. */
interface Deed<T> {
  readonly keys: readonly Key[];
  readonly operationId?: OperationId | undefined;
  readonly lease?: Lease | undefined;
  run(): Promise<T>;
  /** In place of `run` for a short page. */
  runShort?(): Promise<T>;
  /** Lets go of what the call would have ended. */
  undo?(): Promise<void>;
}

class Failing implements FailingStore {
  readonly inner: StateStore;
  readonly counts: Record<StoreOperation, number> = {
    load: 0,
    list: 0,
    claim: 0,
    begin: 0,
    txLoad: 0,
    commit: 0,
    rollback: 0,
  };
  readonly struck: StoreCall[] = [];
  readonly refused: StoreCall[] = [];
  isCrashed = false;
  readonly crashed: Promise<StoreCall>;
  readonly #onCrash: (call: StoreCall) => void;
  readonly #placed: PlacedFault[] = [];
  #faults: PlacedFault[] = [];
  #gates: PlacedGate[] = [];
  readonly #openers = new Set<() => void>();
  readonly #transactions = new Set<StateTransaction>();

  constructor(inner: StateStore) {
    this.inner = inner;
    const { promise, resolve } = signal<StoreCall>();
    this.crashed = promise;
    this.#onCrash = resolve;
  }

  load(key: Key): Promise<StoredRecord | undefined> {
    return this.call("load", { keys: [key], run: () => this.inner.load(key) });
  }

  list(request: ListRequest): Promise<RecordPage> {
    return this.call("list", {
      keys: [request.prefix],
      run: () => this.inner.list(request),
      runShort: () => this.inner.list({ ...request, limit: Math.min(1, request.limit) }),
    });
  }

  claim(owner: OwnerId): Promise<Lease> {
    return this.call("claim", { keys: [owner], run: () => this.inner.claim(owner) });
  }

  begin(options: BeginOptions = {}): Promise<StateTransaction> {
    return this.call("begin", {
      keys: options.lease === undefined ? [] : [options.lease.owner],
      operationId: options.operation,
      run: async () => {
        const transaction = await this.inner.begin(options);
        this.#transactions.add(transaction);
        return new FailingTransaction(this, transaction, options);
      },
    });
  }

  /** A crashed wrapper leaves the store inside open. */
  async close(): Promise<void> {
    if (!this.isCrashed) await this.inner.close();
  }

  inject(rule: FaultRule): Injection {
    requireSense(rule);
    const placed: PlacedFault = { rule, struck: [] };
    this.#faults.push(placed);
    this.#placed.push(placed);
    const remove = () => {
      this.#faults = this.#faults.filter((other) => other !== placed);
    };
    return { struck: placed.struck, remove };
  }

  hold(rule: HoldRule): Gate {
    const opened = signal<void>();
    const reached = signal<StoreCall>();
    const placed: PlacedGate = {
      rule,
      struck: [],
      opened: opened.promise,
      onReached: reached.resolve,
    };
    this.#gates.push(placed);
    const remove = () => {
      this.#gates = this.#gates.filter((other) => other !== placed);
    };
    const release = () => {
      remove();
      this.#openers.delete(release);
      opened.resolve();
    };
    this.#openers.add(release);
    return { struck: placed.struck, reached: reached.promise, release, remove };
  }

  heal(): void {
    this.#faults = [];
    for (const open of [...this.#openers]) open();
  }

  requireStruck(): void {
    const idle = this.#placed.find(({ struck }) => struck.length === 0);
    assert(idle === undefined, `the fault ${idle?.rule.fault} on ${idle?.rule.on} struck no call`);
  }

  /** Forgets a transaction that has ended. */
  ended(transaction: StateTransaction): void {
    this.#transactions.delete(transaction);
  }

  async call<T>(operation: StoreOperation, deed: Deed<T>): Promise<T> {
    this.counts[operation] += 1;
    const index = this.counts[operation];
    const call: StoreCall = { operation, index, keys: deed.keys, operationId: deed.operationId };
    if (this.isCrashed) {
      this.refused.push(call);
      throw new ClosedError("store (crashed by a test)");
    }
    const gate = take(this.#gates, call);
    const fault = take(this.#faults, call)?.rule.fault;
    if (fault !== undefined) this.struck.push(call);
    const isHeldAfter = gate?.rule.point === "after";
    if (gate !== undefined && !isHeldAfter) await pass(gate, call);
    const outcome = await settle(this.#strike(fault, call, deed));
    if (gate !== undefined && isHeldAfter) await pass(gate, call);
    // Whatever was under way when the crash came is answered to nobody.
    if (this.isCrashed) return new Promise<T>(() => {});
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  async #strike<T>(fault: Fault | undefined, call: StoreCall, deed: Deed<T>): Promise<T> {
    if (this.isCrashed) return new Promise<T>(() => {});
    switch (fault) {
      case undefined:
        return deed.run();
      case "shortPage":
        return deed.runShort === undefined ? deed.run() : deed.runShort();
      case "unavailableAfter":
        await deed.run();
        throw new StoreUnavailable(DEEDS[call.operation], "a test lost the answer");
      case "crashAfter":
        await deed.run();
        return this.#crash(call);
      case "crashBefore":
        return this.#crash(call);
      case "fenced":
        if (deed.lease !== undefined) {
          await this.inner.claim(deed.lease.owner);
          return deed.run();
        }
        await deed.undo?.();
        throw new StoreFenced("an owner without a lease", 0, 1);
      default:
        await deed.undo?.();
        throw plainError(fault, call);
    }
  }

  #crash<T>(call: StoreCall): Promise<T> {
    this.isCrashed = true;
    for (const transaction of this.#transactions) transaction.rollback().catch(() => {});
    this.#transactions.clear();
    this.#onCrash(call);
    return new Promise<T>(() => {});
  }
}

class FailingTransaction implements StateTransaction {
  readonly #store: Failing;
  readonly #inner: StateTransaction;
  readonly #options: BeginOptions;
  readonly #written: Key[] = [];

  constructor(store: Failing, inner: StateTransaction, options: BeginOptions) {
    this.#store = store;
    this.#inner = inner;
    this.#options = options;
  }

  load(key: Key): Promise<StoredRecord | undefined> {
    return this.#call("txLoad", { keys: [key], run: () => this.#inner.load(key) });
  }

  put(key: Key, value: JsonValue, expect?: Revision | "absent"): void {
    this.#inner.put(key, value, expect);
    this.#written.push(key);
  }

  delete(key: Key, expect?: Revision): void {
    this.#inner.delete(key, expect);
    this.#written.push(key);
  }

  commit(): Promise<void> {
    return this.#call("commit", {
      keys: [...this.#written],
      lease: this.#options.lease,
      run: () => {
        this.#store.ended(this.#inner);
        return this.#inner.commit();
      },
      undo: () => this.#drop(),
    });
  }

  rollback(): Promise<void> {
    return this.#call("rollback", { keys: [], run: () => this.#drop() });
  }

  #call<T>(operation: StoreOperation, deed: Deed<T>): Promise<T> {
    return this.#store.call(operation, { ...deed, operationId: this.#options.operation });
  }

  #drop(): Promise<void> {
    this.#store.ended(this.#inner);
    return this.#inner.rollback();
  }
}

/** The first that applies to a call and has strikes left; it counts as struck. */
function take<P extends Placed>(placed: readonly P[], call: StoreCall): P | undefined {
  const found = placed.find(({ rule, struck }) => {
    const isOn =
      typeof rule.on === "string" ? rule.on === call.operation : rule.on.includes(call.operation);
    return isOn && struck.length < (rule.times ?? 1) && (rule.when?.(call) ?? true);
  });
  found?.struck.push(call);
  return found;
}

async function pass(gate: PlacedGate, call: StoreCall): Promise<void> {
  gate.onReached(call);
  await gate.opened;
}

async function settle<T>(work: Promise<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await work };
  } catch (error) {
    return { error };
  }
}

function plainError(
  fault: "unavailableBefore" | "conflict" | "serialization",
  call: StoreCall,
): Error {
  const [key] = call.keys;
  const shown = key === undefined ? "that a test chose" : showKey(key);
  if (fault === "conflict") return new StoreConflict(shown, "was moved by a test");
  if (fault === "serialization") return new StoreSerialization(shown, "a test made it so");
  return new StoreUnavailable(DEEDS[call.operation], "a test made it fail");
}

function requireSense({ on, fault }: FaultRule): void {
  const only =
    fault === "shortPage"
      ? "list"
      : fault === "conflict" || fault === "fenced"
        ? "commit"
        : undefined;
  const operations = typeof on === "string" ? [on] : on;
  if (only === undefined || operations.every((operation) => operation === only)) return;
  throw new ValidationError("fault rule", [
    { path: "/on", found: operations.join(", "), expected: `${only}, for the fault ${fault}` },
  ]);
}

function signal<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settlePromise) => {
    resolve = settlePromise;
  });
  return { promise, resolve };
}
