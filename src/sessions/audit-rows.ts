/**
 * Rows for an audit: read page by page, where an unreadable row ends neither the page nor the audit.
 * What is unreadable is the matter of the store's own audit; here it is only passed over.
 */
import { AssertionError, CorruptionError, ValidationError } from "../errors.js";
import type { JsonObject, JsonValue, Key, StateStore, StoredRecord } from "../store/port.js";
import { UnreadableRecord } from "../store/record.js";

/** One thing that is not as it must be. */
export interface Finding {
  /** Which invariant does not hold, as in `docs/testing.md`. */
  readonly invariant: string;
  readonly key: Key;
  readonly found: string;
}

export type Report = (finding: Finding) => void;

/** A row of a listing; without a record where it is unreadable. */
export interface AuditedRow {
  readonly key: Key;
  readonly record: StoredRecord | undefined;
}

const PAGE = 256;

export async function* auditedRows(store: StateStore, prefix: Key): AsyncGenerator<AuditedRow> {
  let after: Key | undefined;
  let limit = PAGE;
  for (;;) {
    try {
      const page = await store.list({ prefix, after, limit });
      for (const record of page.records) {
        yield { key: record.key, record };
        after = record.key;
      }
      if (page.next === undefined) return;
      after = page.next;
      limit = PAGE;
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      // What stands before it on the page is read one by one.
      if (limit > 1) {
        limit = 1;
        continue;
      }
      yield { key: error.recordKey, record: undefined };
      after = error.recordKey;
    }
  }
}

/**
 * Judges every row below a prefix. A row that is not shaped as its kind is a finding, and the rest
 * goes on.
 */
export async function judgeRows(
  store: StateStore,
  prefix: Key,
  report: Report,
  judge: (row: AuditedRow) => void | Promise<void>,
): Promise<void> {
  for await (const row of auditedRows(store, prefix)) {
    await judged(row.key, report, () => judge(row));
  }
}

/** Runs one judgement; where the row does not even have the parts that are judged, that is told. */
export async function judged(
  key: Key,
  report: Report,
  judge: () => void | Promise<void>,
): Promise<void> {
  try {
    await judge();
  } catch (error) {
    const isOfRow =
      error instanceof CorruptionError ||
      error instanceof ValidationError ||
      error instanceof AssertionError ||
      error instanceof TypeError;
    if (!isOfRow) throw error;
    const found = error instanceof CorruptionError ? error.found : "it is not shaped as its kind";
    report({ invariant: "I3", key, found });
  }
}

/** A row by its key: a record, `undefined` where there is none, `"unreadable"`. */
export async function auditedRow(
  store: StateStore,
  key: Key,
): Promise<StoredRecord | undefined | "unreadable"> {
  try {
    return await store.load(key);
  } catch (error) {
    if (error instanceof UnreadableRecord) return "unreadable";
    throw error;
  }
}

/** The value of a row as an object; `undefined` where it is none, and that is a finding of its own. */
export function objectOf(
  { key, record }: { readonly key: Key; readonly record: StoredRecord },
  report: Report,
): JsonObject | undefined {
  const { value } = record;
  if (isObject(value)) return value;
  report({ invariant: "I1", key, found: "the value is not an object" });
  return undefined;
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
