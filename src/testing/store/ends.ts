/** Closing, and what is there again afterwards. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { type Chapter, listAll, recordAt, requireRefused, valueAt, write } from "./suite.js";

export const closing: Chapter = {
  title: "closing",
  cases: {
    "a closed store refuses every call, and closes again": async (store) => {
      await store.close();
      await store.close();
      const calls = [
        () => store.load(["t", "a"]),
        () => store.list({ prefix: ["t"], limit: 1 }),
        () => store.claim(["owner", "a"]),
        () => store.begin(),
      ];
      for (const call of calls) await requireRefused("HOLDFAST_CLOSED", call);
    },
    "a commit under way when the store closes is done": async (store) => {
      const transaction = await store.begin();
      transaction.put(["t", "a"], 1);
      const committing = transaction.commit();
      await store.close();
      await committing;
    },
    "a transaction still open when the store closes has ended": async (store) => {
      const transaction = await store.begin();
      transaction.put(["t", "a"], 1);
      await store.close();
      await requireRefused("HOLDFAST_CLOSED", () => transaction.commit());
      await requireRefused("HOLDFAST_CLOSED", () => transaction.load(["t", "a"]));
      await transaction.rollback();
    },
  },
};

export const reopening: Chapter = {
  title: "reopening",
  needsReopen: true,
  cases: {
    "committed records come back as they were, others do not": async (store, { reopen }) => {
      const first = await store.begin({ operation: "operation-1" });
      for (let index = 0; index < 300; index += 1) first.put(["t", `${index}`], { index });
      await first.commit();
      const removal = await store.begin();
      removal.delete(["t", "7"]);
      await removal.commit();
      const open = await store.begin();
      open.put(["t", "never"], 1);
      const before = await listAll(store, ["t"]);
      await store.close();
      const again = await reopen(store);
      deepStrictEqual(await listAll(again, ["t"]), before);
      deepStrictEqual((await recordAt(again, ["t", "8"])).operation, "operation-1");
      await again.close();
    },
    "revisions go on growing, and old ones can be expected": async (store, { reopen }) => {
      await write(store, { a: 1 });
      const { revision } = await recordAt(store, ["t", "a"]);
      await write(store, { b: 1 });
      const removal = await store.begin();
      removal.delete(["t", "b"]);
      await removal.commit();
      await store.close();
      const again = await reopen(store);
      const transaction = await again.begin();
      transaction.put(["t", "a"], 2, revision);
      await transaction.commit();
      ok((await recordAt(again, ["t", "a"])).revision > revision + 1);
      await again.close();
    },
    "leases go on: the last one holds, older ones stay over": async (store, { reopen }) => {
      const old = await store.claim(["owner", "a"]);
      const lease = await store.claim(["owner", "a"]);
      await store.close();
      const again = await reopen(store);
      const late = await again.begin({ lease: old });
      late.put(["t", "a"], 1);
      await requireRefused("HOLDFAST_STORE_FENCED", () => late.commit());
      const current = await again.begin({ lease });
      current.put(["t", "a"], 2);
      await current.commit();
      ok((await again.claim(["owner", "a"])).epoch > lease.epoch);
      await again.close();
    },
    "what was acknowledged before a close in the midst of work is there": async (
      store,
      { reopen },
    ) => {
      const acknowledged: string[] = [];
      const work = Array.from({ length: 200 }, async (_, index) => {
        const transaction = await store.begin();
        transaction.put(["t", `${index}`], index);
        await transaction.commit();
        acknowledged.push(`${index}`);
      });
      const settled = Promise.allSettled(work);
      await Promise.resolve();
      await store.close();
      const ends = await settled;
      const again = await reopen(store);
      for (const name of acknowledged) ok((await valueAt(again, ["t", name])) !== undefined, name);
      const found = await listAll(again, ["t"]);
      ok(found.length <= ends.length && found.length >= acknowledged.length);
      await again.close();
    },
  },
};
