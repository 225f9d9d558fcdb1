/**
 * The store port: the whole contract between holdfast and whatever keeps its records. Ports speak
 * JSON values and keys; bytes are the adapter's matter. Adapters are leaves: nothing but the face,
 * the command line and tests imports one.
 */

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

export type JsonObject = { readonly [key: string]: JsonValue };

/**
 * A path of segments. Segments are data: any well-formed string of 1 to 512 bytes of UTF-8, so no
 * separator, case or length can make two paths collide. Order is path order: segment by segment,
 * by the bytes of UTF-8, a path before the paths that it begins.
 */
export type Key = readonly string[];

/** Grows with every commit of a store and never repeats, deletions and reopening included. */
export type Revision = number;

/** Names one mutation. It is kept in every record the mutation wrote and so proves what happened. */
export type OperationId = string;

/** Whose records a lease covers, as the key of the owner's own record. */
export type OwnerId = Key;

/** The right to write for an owner, valid until somebody claims the owner again. */
export interface Lease {
  readonly owner: OwnerId;
  readonly epoch: number;
}

export interface StoredRecord {
  readonly key: Key;
  readonly revision: Revision;
  /** The operation that wrote this revision. */
  readonly operation: OperationId;
  readonly value: JsonValue;
}

export interface ListRequest {
  /** Only records strictly below this path. The empty path lists everything. */
  readonly prefix: Key;
  /** Only records after this key. */
  readonly after?: Key | undefined;
  /** 1 to 256. */
  readonly limit: number;
}

export interface RecordPage {
  readonly records: readonly StoredRecord[];
  /** Where to go on. A short page is not the end; only the absence of `next` is. */
  readonly next?: Key | undefined;
}

export interface BeginOptions {
  /** Makes the commit fail as fenced when somebody has claimed the owner since. */
  readonly lease?: Lease | undefined;
  /** Kept in every record of the commit. A random one is made where none is given. */
  readonly operation?: OperationId | undefined;
}

export interface StateStore {
  /**
   * The latest durable record, or `undefined` where there is none at this moment.
   * @throws StoreUnavailable nothing is known
   * @throws StoreSerialization the bytes are not a record of ours; retrying does not help
   */
  load(key: Key): Promise<StoredRecord | undefined>;

  /**
   * One page in key order. Pages are separate reads: a record written between two pages may be
   * missed or seen.
   * @throws StoreUnavailable | StoreSerialization as `load`
   */
  list(request: ListRequest): Promise<RecordPage>;

  /**
   * Raises the owner's epoch, durably, and gives the lease on it. Commits under older leases fail
   * as fenced from then on.
   * @throws StoreUnavailable the epoch may have been raised; claim again
   */
  claim(owner: OwnerId): Promise<Lease>;

  /** Opens a transaction over the records as of now. Must be ended by `commit` or `rollback`. */
  begin(options?: BeginOptions): Promise<StateTransaction>;

  /** Waits for commits under way, then lets go of everything. Callable again. */
  close(): Promise<void>;
}

export interface StateTransaction {
  /**
   * The record as of this transaction's read view, its own writes included.
   * `undefined` is a fact only once `commit` has succeeded: until then somebody else may have
   * created it.
   * @throws StoreUnavailable nothing is known
   * @throws StoreSerialization the bytes are not a record of ours; retrying does not help
   */
  load(key: Key): Promise<StoredRecord | undefined>;

  /**
   * Stages a write. With `expect` the commit conflicts unless the record has this revision, or is
   * absent, both before this transaction and at its commit.
   * @throws ValidationError at once, for a key or value that cannot be stored
   */
  put(key: Key, value: JsonValue, expect?: Revision | "absent"): void;

  /** Stages a removal; removing what is absent is not an error unless a revision is expected. */
  delete(key: Key, expect?: Revision): void;

  /**
   * Makes all writes durable together, or none. Returns only after they are synced. Ends the
   * transaction, whatever the outcome. With no writes it confirms the reads.
   * @throws StoreConflict certainly not applied: something read or expected has moved; begin again
   * @throws StoreFenced certainly not applied: this owner's epoch is over; stop
   * @throws StoreUnavailable may have been applied; look for the operation id before trying again
   */
  commit(): Promise<void>;

  /** Ends the transaction without a trace. Callable again, also after `commit`. */
  rollback(): Promise<void>;
}
