/** The ids of all sessions in a store, in their order, without reading what the sessions hold. */
import type { Key, StateStore, StoredRecord } from "../store/port.js";
import { keys, sessionsPrefix } from "./records.js";

/** Sorts after everything that a session keeps below its own record. */
const AFTER_ALL = "\u{10ffff}";

export interface StoredSessionId {
  readonly id: string;
  /** The session's own record; rows may be there without one. */
  readonly record: StoredRecord | undefined;
}

/**
 * Streams the sessions whose ids come after `after`. Two reads a session; a session written
 * meanwhile may be missed or seen.
 * @throws StoreUnavailable | StoreSerialization
 */
export async function* sessionIds(
  store: StateStore,
  after?: string,
): AsyncGenerator<StoredSessionId> {
  let from: Key | undefined = after === undefined ? undefined : [...keys.session(after), AFTER_ALL];
  for (;;) {
    const { records, next } = await store.list({ prefix: sessionsPrefix, after: from, limit: 1 });
    const [first] = records;
    if (first === undefined) {
      if (next === undefined) return;
      from = next;
      continue;
    }
    const id = first.key[sessionsPrefix.length] ?? "";
    const isOwn = first.key.length === sessionsPrefix.length + 1;
    yield { id, record: isOwn ? first : undefined };
    from = [...keys.session(id), AFTER_ALL];
  }
}
