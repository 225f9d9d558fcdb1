/**
 * A store in memory with the semantics of the durable ones: the same engine, group commit, pinned
 * views, order of keys. For tests and trials; two supervisors may share one store object.
 */
import { checkedStore } from "./checked.js";
import { encodeIdentity, foundIdentity, IDENTITY_ENCODED } from "./identity.js";
import { MemoryBackend } from "./memory-backend.js";
import { Engine } from "./optimistic.js";
import type { StateStore } from "./port.js";

export interface MemoryStoreOptions {
  /**
   * What a write waits for before it applies. With "microtask" a program of promises alone runs to
   * its end within one turn of the event loop; with "macrotask" commits of a whole turn join, as
   * they do on a disk. Default "microtask".
   */
  readonly writeAfter?: "microtask" | "macrotask";
  /** The instant of founding, ISO 8601. */
  readonly nowIso?: string;
}

// Kept here, so that a test's mocked timers do not stop the store.
const realSetImmediate = setImmediate;

/** An empty store. It lives as long as the object; `close` ends its use. */
export function memoryStore({
  writeAfter = "microtask",
  nowIso = new Date().toISOString(),
}: MemoryStoreOptions = {}): StateStore {
  const settle =
    writeAfter === "microtask"
      ? () => Promise.resolve()
      : () => new Promise<void>((resolve) => realSetImmediate(resolve));
  const identity = foundIdentity(nowIso);
  const backend = new MemoryBackend(settle, [[IDENTITY_ENCODED, encodeIdentity(identity)]]);
  return checkedStore(new Engine(backend, identity));
}
