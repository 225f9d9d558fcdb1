/**
 * What the transaction engine asks of an ordered store of texts: reads, a pinned view, one atomic
 * synced write. Backends know no records, revisions or conflicts. Keys are encoded keys, and order
 * is the order of their UTF-8 bytes.
 */

/** Reads as of the moment the view was made. */
export interface BackendView {
  /** @throws StoreUnavailable | StoreSerialization as the store port says */
  get(key: string): Promise<string | undefined>;
  /** Lets go of what the view pins. Reads under way may still finish; callable again. */
  release(): void;
}

/** Rows on their way into one write. It is filled while an earlier batch is being written. */
export interface BackendBatch {
  put(key: string, text: string): void;
  delete(key: string): void;
  /** All rows or none; resolves when they are synced and visible to reads and new views. */
  write(): Promise<void>;
  /** Gives the rows up. Only instead of `write`. */
  discard(): void;
}

export interface RangeRequest {
  readonly gte: string;
  readonly lt?: string | undefined;
  readonly limit: number;
}

/** One row as it is stored: encoded key and record text. */
export type Row = readonly [key: string, text: string];

export interface Backend {
  get(key: string): Promise<string | undefined>;
  range(request: RangeRequest): Promise<readonly Row[]>;
  view(): BackendView;
  batch(): BackendBatch;
  /** Every row as of now, in the order of the keys. */
  rows(): AsyncIterable<Row>;
  close(): Promise<void>;
}

/** The door through which an audit sees rows that are no records. Only our own stores have it. */
export const rawRows: unique symbol = Symbol.for("holdfast.store.rawRows");

export interface RawRows {
  [rawRows](): AsyncIterable<Row>;
}

/** Whether a store lets an audit see its rows. */
export function hasRawRows(store: object): store is RawRows {
  return rawRows in store && typeof store[rawRows] === "function";
}
