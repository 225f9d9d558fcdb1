/** Commits that arrive while a batch is being written are joined, and each is told of its own batch. */
import { describe, expect, it } from "vitest";
import { StoreConflict, StoreUnavailable } from "../../src/errors.js";
import type { Backend } from "../../src/store/backend.js";
import { checkedStore } from "../../src/store/checked.js";
import { MemoryBackend } from "../../src/store/memory-backend.js";
import { openEngine } from "../../src/store/optimistic.js";
import type { StateStore } from "../../src/store/port.js";

/** A backend whose writes wait until they are let go, and are counted. */
class HeldWrites {
  readonly #inner = new MemoryBackend(async () => {});
  /** Rows of each batch that was given to the disk, in order. */
  readonly batches: number[] = [];
  #held: { resolve: () => void; reject: (error: Error) => void }[] = [];
  isHolding = false;

  readonly backend: Backend = {
    get: (key) => this.#inner.get(key),
    range: (request) => this.#inner.range(request),
    view: () => this.#inner.view(),
    rows: () => this.#inner.rows(),
    close: () => this.#inner.close(),
    batch: () => {
      const batch = this.#inner.batch();
      let rows = 0;
      return {
        put: (key, text) => {
          rows += 1;
          batch.put(key, text);
        },
        delete: (key) => {
          rows += 1;
          batch.delete(key);
        },
        discard: () => batch.discard(),
        write: async () => {
          this.batches.push(rows);
          if (this.isHolding) {
            await new Promise<void>((resolve, reject) => {
              this.#held.push({ resolve, reject });
            });
          }
          await batch.write();
        },
      };
    },
  };

  /** Lets the write that is under way go on, or fail. */
  async next(error?: Error): Promise<void> {
    const held = this.#held.shift();
    if (held === undefined) throw new Error("no write is held");
    if (error === undefined) held.resolve();
    else held.reject(error);
    await settled();
  }
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 1));

async function openHeld() {
  const held = new HeldWrites();
  const store = checkedStore(await openEngine(held.backend));
  held.batches.length = 0;
  held.isHolding = true;
  return { held, store };
}

/** A commit of one row, with how it ended. */
async function commit(store: StateStore, name: string, value = 1) {
  const transaction = await store.begin();
  transaction.put(["t", name], value);
  const outcome: { ended?: "done" | Error } = {};
  const ended = transaction.commit().then(
    () => {
      outcome.ended = "done";
    },
    (error: Error) => {
      outcome.ended = error;
    },
  );
  await settled();
  return { outcome, ended };
}

describe("group commit", () => {
  it("joins all commits that come while a batch is written into the next one", async () => {
    const { held, store } = await openHeld();
    const first = await commit(store, "first");
    const others = await Promise.all(
      Array.from({ length: 100 }, (_, index) => commit(store, `${index}`)),
    );
    expect(held.batches).toEqual([1]);
    await held.next();
    expect(first.outcome.ended).toBe("done");
    expect(others.every(({ outcome }) => outcome.ended === undefined)).toBe(true);
    expect(held.batches).toEqual([1, 100]);
    await held.next();
    expect(others.every(({ outcome }) => outcome.ended === "done")).toBe(true);
    expect(held.batches).toEqual([1, 100]);
  });

  it("begins the next write before it tells of the last one", async () => {
    const { held, store } = await openHeld();
    const first = await commit(store, "first");
    await commit(store, "second");
    let batchesWhenTold = 0;
    void first.ended.then(() => {
      batchesWhenTold = held.batches.length;
    });
    await held.next();
    expect(batchesWhenTold).toBe(2);
    await held.next();
  });

  it("tells commits of the same tick of one write", async () => {
    const { held, store } = await openHeld();
    const transactions = await Promise.all(Array.from({ length: 10 }, () => store.begin()));
    const all = transactions.map((transaction, index) => {
      transaction.put(["t", `${index}`], index);
      return transaction.commit();
    });
    await settled();
    expect(held.batches).toEqual([10]);
    await held.next();
    await Promise.all(all);
  });

  it("judges a commit against writes that are not durable yet, and tells once they are", async () => {
    const { held, store } = await openHeld();
    const late = await store.begin();
    expect(await late.load(["t", "a"])).toBeUndefined();
    const first = await commit(store, "a");
    late.put(["t", "b"], 1);
    let refused: unknown;
    void late.commit().catch((error: unknown) => {
      refused = error;
    });
    await settled();
    expect(refused).toBeUndefined();
    await held.next();
    expect(first.outcome.ended).toBe("done");
    expect(refused).toBeInstanceOf(StoreConflict);
    expect(await store.load(["t", "b"])).toBeUndefined();
  });

  it("shows nobody what is not durable", async () => {
    const { held, store } = await openHeld();
    await commit(store, "a");
    expect(await store.load(["t", "a"])).toBeUndefined();
    const transaction = await store.begin();
    expect(await transaction.load(["t", "a"])).toBeUndefined();
    await transaction.rollback();
    await held.next();
    expect((await store.load(["t", "a"]))?.value).toBe(1);
  });

  it("is over once a write has failed: what came with it and after it is refused", async () => {
    const { held, store } = await openHeld();
    const first = await commit(store, "a");
    const second = await commit(store, "b");
    await held.next(new Error("no space left"));
    for (const { outcome } of [first, second]) {
      expect(outcome.ended).toBeInstanceOf(StoreUnavailable);
      expect(String(outcome.ended)).toContain("no space left");
    }
    expect(held.batches).toEqual([1]);
    await expect(store.begin()).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.load(["t", "a"])).rejects.toThrow(/closed and opened again/);
    await store.close();
  });

  it("waits for every commit when the store is closed, and takes no more", async () => {
    const { held, store } = await openHeld();
    const first = await commit(store, "a");
    let isClosed = false;
    const closing = store.close().then(() => {
      isClosed = true;
    });
    await settled();
    expect(isClosed).toBe(false);
    await expect(store.begin()).rejects.toThrow(/closed/);
    await held.next();
    await closing;
    expect(first.outcome.ended).toBe("done");
  });
});
