/** Ids as people type them: whole, or a beginning that only one id has. */
import { NotFoundError, ValidationError } from "../errors.js";
import { requireId } from "../sessions/parse-input.js";
import { keys, sessionsPrefix } from "../sessions/records.js";
import type { Key, StateStore } from "../store/port.js";
import { plainId } from "./plain-text.js";

/** Candidates named where a beginning is not unique. */
const CANDIDATES_MAX = 5;

/** @throws NotFoundError no id begins so; ValidationError more than one does */
export async function findSessionId(store: StateStore, given: string): Promise<string> {
  requireId(given, "session id");
  if ((await store.load(keys.session(given))) !== undefined) return given;
  return findByPrefix(store, sessionsPrefix, given, "session");
}

/** @throws NotFoundError no id begins so; ValidationError more than one does */
export async function findInputId(
  store: StateStore,
  sessionId: string,
  given: string,
): Promise<string> {
  requireId(given, "input id");
  if ((await store.load(keys.inputId(sessionId, given))) !== undefined) return given;
  return findByPrefix(store, keys.inputId(sessionId, given).slice(0, -1), given, "input");
}

/** Keys are in byte order, so all ids with one beginning stand together, right after it. */
async function findByPrefix(
  store: StateStore,
  parent: Key,
  given: string,
  kind: string,
): Promise<string> {
  const found: string[] = [];
  let after: Key | undefined = [...parent, given];
  while (after !== undefined && found.length <= CANDIDATES_MAX) {
    const page: Awaited<ReturnType<StateStore["list"]>> = await store.list({
      prefix: parent,
      after,
      limit: 1,
    });
    const id = page.records[0]?.key[parent.length];
    if (id !== undefined) {
      if (!id.startsWith(given)) break;
      if (found.at(-1) !== id) found.push(id);
      after = [...parent, id, AFTER_ALL];
    } else {
      after = page.next;
    }
  }
  const [only] = found;
  if (only === undefined) throw new NotFoundError(kind, given);
  if (found.length === 1) return only;
  const shown = found.slice(0, CANDIDATES_MAX).map(plainId).join(", ");
  throw new ValidationError(`${kind} id`, [
    {
      path: "",
      found: `the beginning of ${shown}${found.length > CANDIDATES_MAX ? " and more" : ""}`,
      expected: "the beginning of one",
    },
  ]);
}

/** Sorts after everything below an id. */
const AFTER_ALL = "\u{10ffff}";
