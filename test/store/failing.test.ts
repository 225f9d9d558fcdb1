/** The failing store does what each fault says, to the calls it was told, and nothing else. */
import { describe, expect, it } from "vitest";
import {
  AssertionError,
  ClosedError,
  StoreConflict,
  StoreFenced,
  StoreSerialization,
  StoreUnavailable,
  ValidationError,
} from "../../src/errors.js";
import { failingStore } from "../../src/store/failing.js";
import { memoryStore } from "../../src/store/memory.js";
import type { StateStore } from "../../src/store/port.js";

const KEY = ["t", "a"];

async function put(store: StateStore, value: number, key = KEY): Promise<void> {
  const transaction = await store.begin({ lease: await store.claim(["t"]) });
  transaction.put(key, value);
  await transaction.commit();
}

const stored = async (store: StateStore) => (await store.load(KEY))?.value;

describe("a commit", () => {
  it.each([
    ["unavailableBefore", StoreUnavailable, undefined],
    ["unavailableAfter", StoreUnavailable, 1],
    ["conflict", StoreConflict, undefined],
    ["serialization", StoreSerialization, undefined],
    ["fenced", StoreFenced, undefined],
  ] as const)("that is struck by %s", async (fault, error, left) => {
    const inner = memoryStore();
    const store = failingStore(inner);
    const injection = store.inject({ on: "commit", fault });
    await expect(put(store, 1)).rejects.toBeInstanceOf(error);
    expect(await stored(inner)).toBe(left);
    expect(injection.struck).toMatchObject([{ operation: "commit", index: 1, keys: [KEY] }]);
    // It strikes once, where nothing else was said.
    await put(store, 2);
    expect(await stored(inner)).toBe(2);
  });

  it.each([
    ["crashBefore", undefined],
    ["crashAfter", 1],
  ] as const)(
    "that is struck by %s never answers, and later calls are refused",
    async (fault, left) => {
      const inner = memoryStore();
      const store = failingStore(inner);
      store.inject({ on: "commit", fault });
      let isAnswered = false;
      void put(store, 1).finally(() => {
        isAnswered = true;
      });
      expect(await store.crashed).toMatchObject({ operation: "commit" });
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(isAnswered).toBe(false);
      expect(store.isCrashed).toBe(true);
      await expect(store.load(KEY)).rejects.toBeInstanceOf(ClosedError);
      expect(store.refused).toMatchObject([{ operation: "load" }]);
      // The store inside is there for whoever comes next.
      await store.close();
      expect(await stored(inner)).toBe(left);
    },
  );
});

describe("a rule", () => {
  it("strikes the calls that it names, as often as it says, first rule first", async () => {
    const store = failingStore(memoryStore());
    store.inject({ on: ["load", "list"], fault: "unavailableBefore", times: 2 });
    const later = store.inject({ on: "load", fault: "serialization" });
    await expect(store.load(KEY)).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.list({ prefix: [], limit: 1 })).rejects.toBeInstanceOf(StoreUnavailable);
    expect(later.struck).toEqual([]);
    await expect(store.load(KEY)).rejects.toBeInstanceOf(StoreSerialization);
    expect(await store.load(KEY)).toBeUndefined();
    expect(store.counts).toMatchObject({ load: 3, list: 1 });
    expect(store.struck).toHaveLength(3);
  });

  it("strikes by key and by count", async () => {
    const store = failingStore(memoryStore());
    store.inject({
      on: "commit",
      fault: "conflict",
      when: ({ keys, index }) => index > 1 && keys.some(([, name]) => name === "b"),
    });
    await put(store, 1, ["t", "b"]);
    await put(store, 1);
    await expect(put(store, 1, ["t", "b"])).rejects.toBeInstanceOf(StoreConflict);
  });

  it("can be taken back, each and all", async () => {
    const store = failingStore(memoryStore());
    store.inject({ on: "load", fault: "serialization", times: 9 }).remove();
    store.inject({ on: "load", fault: "serialization", times: 9 });
    store.heal();
    expect(await store.load(KEY)).toBeUndefined();
  });

  it("that struck nothing is told, so that no test passes for that reason", async () => {
    const store = failingStore(memoryStore());
    store.inject({ on: "load", fault: "serialization" });
    expect(() => store.requireStruck()).toThrow(AssertionError);
    await store.load(KEY).catch(() => {});
    store.requireStruck();
  });

  it("that makes no sense is refused", () => {
    const store = failingStore(memoryStore());
    expect(() => store.inject({ on: "load", fault: "conflict" })).toThrow(ValidationError);
    expect(() => store.inject({ on: "commit", fault: "shortPage" })).toThrow(ValidationError);
  });

  it("of a short page gives one record and where to go on", async () => {
    const store = failingStore(memoryStore());
    for (const name of ["a", "b", "c"]) await put(store, 1, ["t", name]);
    store.inject({ on: "list", fault: "shortPage" });
    const page = await store.list({ prefix: ["t"], limit: 256 });
    expect(page.records).toHaveLength(1);
    expect(page.next).toEqual(["t", "a"]);
  });
});

describe("a gate", () => {
  it.each(["before", "after"] as const)(
    "holds a commit %s it is done, until it is released",
    async (point) => {
      const inner = memoryStore();
      const store = failingStore(inner);
      const gate = store.hold({ on: "commit", point });
      let isDone = false;
      const done = put(store, 1).then(() => {
        isDone = true;
      });
      expect(await gate.reached).toMatchObject({ operation: "commit" });
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(isDone).toBe(false);
      expect(await stored(inner)).toBe(point === "before" ? undefined : 1);
      gate.release();
      await done;
      expect(await stored(inner)).toBe(1);
    },
  );

  it("that is healed lets go of what it holds", async () => {
    const store = failingStore(memoryStore());
    store.hold({ on: "load" });
    const loading = store.load(KEY);
    store.heal();
    expect(await loading).toBeUndefined();
  });
});
