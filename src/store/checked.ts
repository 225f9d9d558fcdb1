/**
 * The checks that are common to all adapters, in one wrapper: keys, values, limits, prefixes,
 * expectations, operation ids and leases. A bad argument fails the same way everywhere, before the
 * adapter sees it.
 */
import { describeNumber, ValidationError } from "../errors.js";
import { PAGE_MAX } from "../limits.js";
import { hasRawRows, type RawRows, type Row, rawRows } from "./backend.js";
import { checkRow } from "./json.js";
import { checkKey, KEY_SEGMENTS_MAX } from "./keys.js";
import type {
  BeginOptions,
  JsonValue,
  Key,
  Lease,
  ListRequest,
  OwnerId,
  RecordPage,
  Revision,
  StateStore,
  StateTransaction,
  StoredRecord,
} from "./port.js";

/**
 * Puts the checks before a store. A store that `checkedStore` gave is returned as it is. Faults of
 * asynchronous calls reject; those of `put` and `delete` throw at once.
 */
export function checkedStore(adapter: StateStore): StateStore {
  if (adapter instanceof CheckedStore) return adapter;
  return hasRawRows(adapter) ? new CheckedRawStore(adapter) : new CheckedStore(adapter);
}

class CheckedStore<Adapter extends StateStore = StateStore> implements StateStore {
  protected readonly adapter: Adapter;

  constructor(adapter: Adapter) {
    this.adapter = adapter;
  }

  async load(key: Key): Promise<StoredRecord | undefined> {
    checkKey(key);
    return this.adapter.load(key);
  }

  async list(request: ListRequest): Promise<RecordPage> {
    checkKey(request.prefix, "prefix", true);
    if (request.after !== undefined) checkKey(request.after, "after");
    checkLimit(request.limit);
    return this.adapter.list(request);
  }

  async claim(owner: OwnerId): Promise<Lease> {
    checkOwner(owner);
    return this.adapter.claim(owner);
  }

  async begin(options: BeginOptions = {}): Promise<StateTransaction> {
    if (options.operation !== undefined) checkKey([options.operation], "operation id");
    if (options.lease !== undefined) checkLease(options.lease);
    return new CheckedTransaction(await this.adapter.begin(options));
  }

  close(): Promise<void> {
    return this.adapter.close();
  }
}

class CheckedRawStore extends CheckedStore<StateStore & RawRows> implements RawRows {
  [rawRows](): AsyncIterable<Row> {
    return this.adapter[rawRows]();
  }
}

class CheckedTransaction implements StateTransaction {
  readonly #inner: StateTransaction;

  constructor(inner: StateTransaction) {
    this.#inner = inner;
  }

  async load(key: Key): Promise<StoredRecord | undefined> {
    checkKey(key);
    return this.#inner.load(key);
  }

  put(key: Key, value: JsonValue, expect?: Revision | "absent"): void {
    checkKey(key);
    checkRow(value);
    if (expect !== "absent") checkExpected(expect);
    this.#inner.put(key, value, expect);
  }

  delete(key: Key, expect?: Revision): void {
    checkKey(key);
    checkExpected(expect);
    this.#inner.delete(key, expect);
  }

  commit(): Promise<void> {
    return this.#inner.commit();
  }

  rollback(): Promise<void> {
    return this.#inner.rollback();
  }
}

function checkLimit(limit: unknown): void {
  if (Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= PAGE_MAX) return;
  throw new ValidationError("limit", [
    { path: "", found: describeNumber(limit), expected: `a whole number from 1 to ${PAGE_MAX}` },
  ]);
}

function checkExpected(expect: unknown): void {
  if (expect === undefined || (Number.isSafeInteger(expect) && Number(expect) >= 1)) return;
  throw new ValidationError("expected revision", [
    { path: "", found: describeNumber(expect), expected: "a revision that the store gave" },
  ]);
}

function checkLease(lease: Lease): void {
  checkOwner(lease.owner);
  if (Number.isSafeInteger(lease.epoch) && lease.epoch >= 1) return;
  throw new ValidationError("lease", [
    {
      path: "/epoch",
      found: describeNumber(lease.epoch),
      expected: "an epoch that the store gave",
    },
  ]);
}

/** Adapters keep an owner's epoch under its key with one segment before it. */
function checkOwner(owner: OwnerId): void {
  checkKey(owner, "owner");
  if (owner.length < KEY_SEGMENTS_MAX) return;
  throw new ValidationError("owner", [
    { path: "", found: `${owner.length} segments long`, expected: "at most 15 segments" },
  ]);
}
