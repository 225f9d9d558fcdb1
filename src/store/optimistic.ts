/**
 * The transaction engine that the memory store and LevelDB share: optimistic transactions over any
 * ordered backend of texts. Reads come from a view pinned at begin; at commit every key read or
 * expected must still have the revision that was seen. It trusts its callers' keys and values:
 * `checkedStore` stands before it.
 */
import { randomUUID } from "node:crypto";
import { ClosedError, type CorruptionError, StoreConflict, ValidationError } from "../errors.js";
import { type Backend, type RawRows, type Row, rawRows } from "./backend.js";
import { CommitQueue } from "./commit-queue.js";
import { type Identity, openIdentity } from "./identity.js";
import {
  afterEncoded,
  compareEncoded,
  decodeKey,
  encodeKey,
  prefixRange,
  showKey,
} from "./keys.js";
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
import type { Era } from "./recent-writes.js";
import { decodeRecord } from "./record.js";

/** The revision that a transaction shows for what it has staged; the real one comes at commit. */
const STAGED_REVISION: Revision = 0;

/** Segments under which only the store itself writes. */
const RESERVED = new Set(["store", "lease"]);

export interface EngineOptions {
  /** The instant of founding, ISO 8601. */
  readonly nowIso?: string;
  /** Sees the identity as it was found, before anything is written; may throw. */
  readonly verify?: (found: Identity | undefined) => void;
}

/**
 * Opens the engine over a backend that nothing else writes to: reads or founds its identity and
 * reserves revisions, durably.
 * @throws CorruptionError rows without an identity, or an identity of another format
 * @throws StoreUnavailable | StoreSerialization
 */
export async function openEngine(
  backend: Backend,
  { nowIso = new Date().toISOString(), verify = () => {} }: EngineOptions = {},
): Promise<Engine> {
  return new Engine(backend, await openIdentity(backend, { nowIso, verify }));
}

export class Engine implements StateStore, RawRows {
  readonly identity: Identity;
  readonly #backend: Backend;
  readonly #queue: CommitQueue;
  readonly #open = new Set<Transaction>();
  #closing: Promise<void> | undefined;

  constructor(backend: Backend, identity: Identity) {
    this.identity = identity;
    this.#backend = backend;
    this.#queue = new CommitQueue(backend, identity);
  }

  async load(key: Key): Promise<StoredRecord | undefined> {
    this.#requireOpen("load a record");
    const encoded = encodeKey(key);
    const text = await this.#backend.get(encoded);
    return text === undefined ? undefined : decodeRecord(key, encoded, text);
  }

  async list({ prefix, after, limit }: ListRequest): Promise<RecordPage> {
    this.#requireOpen("list records");
    const range = prefixRange(prefix);
    const start = after === undefined ? range.gte : afterEncoded(encodeKey(after));
    const gte = compareEncoded(start, range.gte) > 0 ? start : range.gte;
    // One more row than asked for tells whether there is a next page.
    const rows = await this.#backend.range({ gte, lt: range.lt, limit: limit + 1 });
    const records = rows.slice(0, limit).map(([encoded, text]) => {
      return decodeRecord(decodeKey(encoded), encoded, text);
    });
    return rows.length > limit ? { records, next: records.at(-1)?.key } : { records };
  }

  async claim(owner: OwnerId): Promise<Lease> {
    this.#requireOpen("claim an owner");
    return this.#queue.track(() => this.#queue.claim(owner, `claim.${randomUUID()}`));
  }

  async begin(options: BeginOptions = {}): Promise<StateTransaction> {
    this.#requireOpen("begin a transaction");
    const transaction = new Transaction(this.#queue, options, (ended) => this.#open.delete(ended));
    this.#open.add(transaction);
    return transaction;
  }

  /** Damage was found beneath the open store: nothing is read or written from here on. */
  condemn(damage: CorruptionError): void {
    this.#queue.condemn(damage);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [rawRows](): AsyncIterable<Row> {
    return this.#backend.rows();
  }

  async #close(): Promise<void> {
    for (const transaction of this.#open) transaction.abandon();
    await this.#queue.drain();
    await this.#backend.close();
  }

  #requireOpen(operation: string): void {
    if (this.#closing !== undefined) throw new ClosedError("store");
    this.#queue.requireHealthy(operation);
  }
}

class Transaction implements StateTransaction {
  readonly #queue: CommitQueue;
  readonly #lease: Lease | undefined;
  readonly #operation: string;
  readonly #onEnd: (transaction: Transaction) => void;
  readonly #era: Era;
  /** Encoded key → the revision in the view, 0 where it was absent. */
  readonly #reads = new Map<string, Revision>();
  /** Encoded key → the body, `undefined` for a removal. */
  readonly #writes = new Map<string, string | undefined>();
  /** Encoded key → the revision demanded, 0 for absence. */
  readonly #expects = new Map<string, Revision>();
  #state: "active" | "committing" | "ended" = "active";

  constructor(
    queue: CommitQueue,
    options: BeginOptions,
    onEnd: (transaction: Transaction) => void,
  ) {
    this.#queue = queue;
    this.#era = queue.enter();
    this.#lease = options.lease;
    this.#operation = options.operation ?? randomUUID();
    this.#onEnd = onEnd;
  }

  async load(key: Key): Promise<StoredRecord | undefined> {
    this.#requireActive();
    this.#queue.requireHealthy("load a record");
    const encoded = encodeKey(key);
    if (this.#writes.has(encoded)) return this.#staged(key, encoded);
    return this.#read(key, encoded);
  }

  put(key: Key, value: JsonValue, expect?: Revision | "absent"): void {
    this.#stage(key, JSON.stringify(value), expect === "absent" ? 0 : expect);
  }

  delete(key: Key, expect?: Revision): void {
    this.#stage(key, undefined, expect);
  }

  async commit(): Promise<void> {
    this.#requireActive();
    this.#state = "committing";
    await this.#queue.track(() => this.#commit());
  }

  async rollback(): Promise<void> {
    this.abandon();
  }

  /** Ends the transaction when it or the whole store is given up. */
  abandon(): void {
    if (this.#state !== "active") return;
    this.#end();
    this.#queue.leave(this.#era);
  }

  async #commit(): Promise<void> {
    try {
      if (this.#expects.size > 0) await this.#confirmExpectations();
    } catch (error) {
      this.#end();
      this.#queue.leave(this.#era);
      throw error;
    }
    this.#end();
    const commit = {
      operation: this.#operation,
      era: this.#era,
      lease: this.#lease,
      reads: this.#reads,
      writes: this.#writes,
    };
    // The queue leaves the era once it has judged the commit.
    await (this.#writes.size === 0 ? this.#queue.confirm(commit) : this.#queue.submit(commit));
  }

  #stage(key: Key, body: string | undefined, expect: Revision | undefined): void {
    this.#requireActive();
    const [root] = key;
    if (root !== undefined && RESERVED.has(root)) {
      throw new ValidationError("key", [
        { path: "/0", found: `the reserved word ${root}`, expected: "another first segment" },
      ]);
    }
    const encoded = encodeKey(key);
    if (expect !== undefined) {
      const earlier = this.#expects.get(encoded);
      // Two different expectations cannot both hold, and no revision is negative.
      this.#expects.set(encoded, earlier === undefined || earlier === expect ? expect : -1);
    }
    this.#writes.set(encoded, body);
  }

  #staged(key: Key, encoded: string): StoredRecord | undefined {
    const body = this.#writes.get(encoded);
    if (body === undefined) return undefined;
    const value: JsonValue = JSON.parse(body);
    return { key, revision: STAGED_REVISION, operation: this.#operation, value };
  }

  async #read(key: Key, encoded: string): Promise<StoredRecord | undefined> {
    const text = await this.#queue.read(this.#era, encoded);
    const record = text === undefined ? undefined : decodeRecord(key, encoded, text);
    this.#reads.set(encoded, record?.revision ?? 0);
    return record;
  }

  /** Expected keys become reads, so that the queue has one thing to judge. */
  async #confirmExpectations(): Promise<void> {
    const unread = [...this.#expects.keys()].filter((encoded) => !this.#reads.has(encoded));
    await Promise.all(unread.map((encoded) => this.#read(decodeKey(encoded), encoded)));
    for (const [encoded, expected] of this.#expects) {
      const found = this.#reads.get(encoded);
      if (found === expected) continue;
      const reason = expected === 0 ? "exists, expected absent" : "has not the expected revision";
      throw new StoreConflict(showKey(decodeKey(encoded)), reason);
    }
  }

  #requireActive(): void {
    if (this.#state !== "active") throw new ClosedError("transaction");
  }

  #end(): void {
    this.#state = "ended";
    this.#onEnd(this);
  }
}
