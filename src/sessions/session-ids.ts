/** The ids of all sessions in a store, in their order, without reading what the sessions hold. */
import type { Key, StateStore, StoredRecord } from "../store/port.js";
import { UnreadableRecord } from "../store/record.js";
import { keys, sessionsPrefix } from "./records.js";

/** Sorts after everything that stands below an id. */
const AFTER_ALL = "\u{10ffff}";

export interface StoredSessionId {
  readonly id: string;
  /**
   * The session's own record. Rows may be there without one; `"unreadable"` where the first row of
   * the session is none.
   */
  readonly record: StoredRecord | undefined | "unreadable";
}

/**
 * Streams the sessions. Two reads a session; a session written meanwhile may be missed or seen.
 * @throws StoreUnavailable
 */
export async function* sessionIds(store: StateStore): AsyncGenerator<StoredSessionId> {
  for await (const { id, first } of idsBelow(store, sessionsPrefix)) {
    if (first === "unreadable") yield { id, record: await ownRecord(store, id) };
    else yield { id, record: first.key.length === sessionsPrefix.length + 1 ? first : undefined };
  }
}

/** The segments that follow `prefix`, each with the first record that has it. */
export async function* idsBelow(
  store: StateStore,
  prefix: Key,
): AsyncGenerator<{ readonly id: string; readonly first: StoredRecord | "unreadable" }> {
  let after: Key | undefined;
  for (;;) {
    let first: StoredRecord | "unreadable" | undefined;
    let key: Key | undefined;
    try {
      const page = await store.list({ prefix, after, limit: 1 });
      first = page.records[0];
      key = page.records[0]?.key ?? page.next;
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      first = "unreadable";
      key = error.recordKey;
    }
    if (key === undefined) return;
    if (first === undefined) {
      after = key;
      continue;
    }
    const id = key[prefix.length] ?? "";
    yield { id, first };
    after = [...prefix, id, AFTER_ALL];
  }
}

async function ownRecord(
  store: StateStore,
  id: string,
): Promise<StoredRecord | undefined | "unreadable"> {
  try {
    return await store.load(keys.session(id));
  } catch (error) {
    if (error instanceof UnreadableRecord) return "unreadable";
    throw error;
  }
}
