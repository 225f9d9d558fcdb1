/**
 * The audit of records over any store: every record is read, its key and envelope are decoded
 * (invariant I1 of the suite), and further checks see it. What records mean is for those checks.
 */
import { StoreSerialization, show } from "../errors.js";
import { PAGE_MAX } from "../limits.js";
import { hasRawRows, rawRows } from "./backend.js";
import { decodeKey, showKey } from "./keys.js";
import type { Key, StateStore, StoredRecord } from "./port.js";
import { decodeRecord, UnreadableRecord } from "./record.js";

export interface Finding {
  /** The record, as keys are shown in messages. */
  readonly where: string;
  readonly found: string;
}

/** Looks at one record; gives what is wrong with it. Called in key order. */
export type RecordCheck = (record: StoredRecord) => Iterable<string>;

export interface RecordAudit {
  /** Records read, sound or not. */
  readonly records: number;
  /** Records by the first segment of their key. */
  readonly byKind: ReadonlyMap<string, number>;
  readonly findings: readonly Finding[];
  /** True where the audit had to stop before the end, which then is a finding too. */
  readonly isPartial: boolean;
}

/** Findings kept; beyond it an audit stops, since the store is beyond help by reading on. */
export const FINDINGS_MAX = 10_000;

/**
 * Reads the whole store. It goes on after a record that cannot be read; a store of another make
 * may not let it, and then it stops and says so. Costs one pass, holds one page in memory.
 * @throws StoreUnavailable reading failed
 */
export async function auditRecords(
  store: StateStore,
  checks: readonly RecordCheck[] = [],
): Promise<RecordAudit> {
  const byKind = new Map<string, number>();
  const findings: Finding[] = [];
  let records = 0;
  let isPartial = false;
  for await (const outcome of hasRawRows(store) ? ownRecords(store[rawRows]()) : pages(store)) {
    if ("stopped" in outcome) {
      isPartial = true;
      findings.push(outcome.stopped);
      break;
    }
    records += 1;
    const { kind } = outcome;
    byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
    if ("finding" in outcome) findings.push(outcome.finding);
    else findings.push(...applyChecks(checks, outcome.record));
    if (findings.length >= FINDINGS_MAX) {
      isPartial = true;
      break;
    }
  }
  return { records, byKind, findings, isPartial };
}

type Outcome =
  | { readonly kind: string; readonly record: StoredRecord }
  | { readonly kind: string; readonly finding: Finding }
  | { readonly stopped: Finding };

/** The kind of rows whose key is not one of ours. */
const FOREIGN = "(foreign)";

function* applyChecks(checks: readonly RecordCheck[], record: StoredRecord): Iterable<Finding> {
  for (const check of checks) {
    for (const found of check(record)) yield { where: showKey(record.key), found };
  }
}

/** Our own stores show rows, so that even a row with a foreign key can be named and passed. */
async function* ownRecords(
  rows: AsyncIterable<readonly [string, string]>,
): AsyncGenerator<Outcome> {
  for await (const [encoded, text] of rows) {
    let key: Key | undefined;
    try {
      key = decodeKey(encoded);
      yield { kind: kindOf(key), record: decodeRecord(key, encoded, text) };
    } catch (error) {
      if (!(error instanceof StoreSerialization)) throw error;
      const where = key === undefined ? show(encoded) : showKey(key);
      const kind = key === undefined ? FOREIGN : kindOf(key);
      yield { kind, finding: { where, found: error.reason } };
    }
  }
}

async function* pages(store: StateStore): AsyncGenerator<Outcome> {
  let after: Key | undefined;
  let limit = PAGE_MAX;
  for (;;) {
    try {
      const page = await store.list({ prefix: [], after, limit });
      for (const record of page.records) yield { kind: kindOf(record.key), record };
      if (page.next === undefined) return;
      after = page.next;
      limit = PAGE_MAX;
    } catch (error) {
      if (!(error instanceof StoreSerialization)) throw error;
      // One by one up to the record at fault, which the error has to name for going on after it.
      if (limit > 1) {
        limit = 1;
        continue;
      }
      const finding = { where: error.key, found: error.reason };
      if (!(error instanceof UnreadableRecord)) {
        yield { stopped: finding };
        return;
      }
      yield { kind: kindOf(error.recordKey), finding };
      after = error.recordKey;
    }
  }
}

function kindOf(key: Key): string {
  return key[0] ?? FOREIGN;
}
