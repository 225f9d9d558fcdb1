/**
 * The store of a world: in memory, or with `HOLDFAST_TEST_STORE=level` a real LevelDB in a directory
 * of its own, which goes with its test file. The test runner runs the same tests on either.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { type RawRows, type Row, rawRows } from "../src/store/backend.js";
import {
  type BeginOptions,
  type Key,
  type LevelStore,
  type ListRequest,
  levelStore,
  memoryStore,
  type OwnerId,
  type StateStore,
  type StateTransaction,
} from "../src/store/index.js";
import { whileOutside } from "./test-clock.js";

const NOW_ISO = "2026-01-01T00:00:00.000Z";

export function worldStore(): StateStore {
  return process.env.HOLDFAST_TEST_STORE === "level"
    ? new OpeningStore()
    : memoryStore({ nowIso: NOW_ISO });
}

/** Stores that are still open in this file, closed together at its end. */
const opened: OpeningStore[] = [];
afterAll(() => Promise.all(opened.splice(0).map((store) => store.remove())));

/** A LevelDB that every call waits for, so that a world can be made without waiting. */
class OpeningStore implements StateStore, RawRows {
  readonly #path = mkdtempSync(join(tmpdir(), "holdfast-world-"));
  readonly #store: Promise<LevelStore & RawRows>;

  constructor() {
    this.#store = levelStore(this.#path) as Promise<LevelStore & RawRows>;
    opened.push(this);
  }

  load(key: Key) {
    return this.#call((store) => store.load(key));
  }

  list(request: ListRequest) {
    return this.#call((store) => store.list(request));
  }

  claim(owner: OwnerId) {
    return this.#call((store) => store.claim(owner));
  }

  async begin(options?: BeginOptions): Promise<StateTransaction> {
    const inner = await this.#call((store) => store.begin(options));
    return {
      load: (key) => whileOutside(() => inner.load(key)),
      put: (key, value, expect) => inner.put(key, value, expect),
      delete: (key, expect) => inner.delete(key, expect),
      commit: () => whileOutside(() => inner.commit()),
      rollback: () => whileOutside(() => inner.rollback()),
    };
  }

  close() {
    return this.#call((store) => store.close());
  }

  #call<T>(call: (store: LevelStore) => Promise<T>): Promise<T> {
    return whileOutside(async () => call(await this.#store));
  }

  async *[rawRows](): AsyncIterable<Row> {
    yield* (await this.#store)[rawRows]();
  }

  async remove(): Promise<void> {
    await this.close();
    rmSync(this.#path, { recursive: true, force: true });
  }
}
