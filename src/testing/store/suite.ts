/**
 * What the chapters of the store conformance suite share: how a store is made, how cases are told,
 * and what a failed expectation says.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { JsonValue, Key, StateStore, StoredRecord } from "../../store/port.js";

/** The two functions of a test runner that the suite needs: those of vitest, jest and node:test fit. */
export interface TestRunner {
  describe(title: string, body: () => void): void;
  it(title: string, body: () => Promise<void>): void;
}

export interface StoreUnderTest {
  /** A new, empty store. */
  make(): Promise<StateStore> | StateStore;
  /**
   * Opens again what a closed store kept. Left out for stores that keep nothing; the cases that need
   * it are then left out too.
   */
  reopen?: Reopen;
}

export type Reopen = (closed: StateStore) => Promise<StateStore> | StateStore;

/** One case: it gets a store of its own, which is closed afterwards. */
export type Case = (store: StateStore, kit: { readonly reopen: Reopen }) => Promise<void>;

export interface Chapter {
  readonly title: string;
  readonly cases: Readonly<Record<string, Case>>;
  /** Whether its cases need `reopen`. */
  readonly needsReopen?: boolean;
}

export type ErrorCode =
  | "HOLDFAST_VALIDATION"
  | "HOLDFAST_CLOSED"
  | "HOLDFAST_STORE_CONFLICT"
  | "HOLDFAST_STORE_FENCED"
  | "HOLDFAST_STORE_SERIALIZATION";

/** Fails unless `work` rejects, or throws, with the code. */
export async function requireRefused(
  code: ErrorCode,
  work: () => unknown,
  what = "the call",
): Promise<void> {
  let found: unknown = "no error";
  try {
    await work();
  } catch (error) {
    found = error instanceof Error && "code" in error ? error.code : error;
  }
  deepStrictEqual(found, code, `${what} is answered with ${String(found)}, expected ${code}`);
}

/** Writes rows in one commit. */
export async function write(
  store: StateStore,
  rows: Readonly<Record<string, JsonValue>>,
): Promise<void> {
  const transaction = await store.begin();
  for (const [name, value] of Object.entries(rows)) transaction.put(["t", name], value);
  await transaction.commit();
}

export async function valueAt(store: StateStore, key: Key): Promise<JsonValue | undefined> {
  return (await store.load(key))?.value;
}

/** A record that must be there. */
export async function recordAt(store: StateStore, key: Key): Promise<StoredRecord> {
  const record = await store.load(key);
  ok(record, `the record ${key.join("/")} is there`);
  return record;
}

/** All records below a prefix, over as many pages as it takes. */
export async function listAll(
  store: StateStore,
  prefix: Key,
  limit = 256,
): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  let after: Key | undefined;
  do {
    const page = await store.list({ prefix, after, limit });
    ok(page.records.length <= limit, `a page of at most ${limit} has ${page.records.length}`);
    records.push(...page.records);
    after = page.next;
  } while (after !== undefined);
  return records;
}

/**
 * Segments that a careless encoding confuses: separators, control characters, prefixes of each
 * other, composed and decomposed accents, astral characters, digits, the longest that is allowed.
 */
export const hostileSegments: readonly string[] = [
  "a",
  "A",
  "a ",
  " a",
  "a/b",
  "a:b",
  "a\u0000",
  "a\u0000b",
  "a\u0001",
  "a\u0001\u0001",
  "a\u0001\u0002",
  "a\u0002",
  "\u0000",
  "\u0001",
  "~",
  "..",
  "__proto__",
  "constructor",
  "\u00e5",
  "a\u030a",
  "\ud83d\ude00",
  "\uffff",
  "\ue000",
  "10",
  "9",
  "09",
  "x".repeat(512),
  "\u00e9".repeat(256),
];
