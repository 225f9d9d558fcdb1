/** Transactions: one view, own writes, all or nothing, and an end that is final. */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { StateTransaction } from "../../store/port.js";
import { type Chapter, listAll, recordAt, requireRefused, valueAt, write } from "./suite.js";

export const transactions: Chapter = {
  title: "transactions",
  cases: {
    "reads show the records as of the beginning, however often": async (store) => {
      await write(store, { a: 1, gone: 1 });
      const transaction = await store.begin();
      deepStrictEqual((await transaction.load(["t", "a"]))?.value, 1);
      const other = await store.begin();
      other.put(["t", "a"], 2);
      other.put(["t", "new"], 2);
      other.delete(["t", "gone"]);
      await other.commit();
      deepStrictEqual((await transaction.load(["t", "a"]))?.value, 1);
      deepStrictEqual(await transaction.load(["t", "new"]), undefined);
      deepStrictEqual((await transaction.load(["t", "gone"]))?.value, 1);
      await transaction.rollback();
      deepStrictEqual(await valueAt(store, ["t", "a"]), 2);
    },
    "a transaction reads its own writes, nobody else does": async (store) => {
      await write(store, { a: 1 });
      const transaction = await store.begin();
      transaction.put(["t", "a"], 2);
      transaction.put(["t", "b"], 2);
      deepStrictEqual((await transaction.load(["t", "a"]))?.value, 2);
      deepStrictEqual((await transaction.load(["t", "b"]))?.value, 2);
      transaction.delete(["t", "a"]);
      deepStrictEqual(await transaction.load(["t", "a"]), undefined);
      deepStrictEqual(await valueAt(store, ["t", "a"]), 1);
      deepStrictEqual((await listAll(store, ["t"])).length, 1);
      await transaction.commit();
      deepStrictEqual(await valueAt(store, ["t", "a"]), undefined);
      deepStrictEqual(await valueAt(store, ["t", "b"]), 2);
    },
    "the last of several writes to one key counts": async (store) => {
      await write(store, { a: 1, b: 1 });
      const transaction = await store.begin();
      transaction.put(["t", "a"], 2);
      transaction.delete(["t", "a"]);
      transaction.put(["t", "a"], 3);
      transaction.put(["t", "b"], 2);
      transaction.delete(["t", "b"]);
      await transaction.commit();
      deepStrictEqual(await valueAt(store, ["t", "a"]), 3);
      deepStrictEqual(await valueAt(store, ["t", "b"]), undefined);
    },
    "a commit that is refused leaves none of its rows": async (store) => {
      await write(store, { a: 1, b: 1 });
      const transaction = await store.begin();
      await transaction.load(["t", "a"]);
      for (let index = 0; index < 300; index += 1) transaction.put(["u", `${index}`], index);
      transaction.delete(["t", "b"]);
      await write(store, { a: 2 });
      await requireRefused("HOLDFAST_STORE_CONFLICT", () => transaction.commit());
      deepStrictEqual(await listAll(store, ["u"]), []);
      deepStrictEqual(await valueAt(store, ["t", "b"]), 1);
    },
    "a commit of 5,000 rows is whole": async (store) => {
      const transaction = await store.begin();
      for (let index = 0; index < 5_000; index += 1) transaction.put(["u", `${index}`], index);
      await transaction.commit();
      deepStrictEqual((await listAll(store, ["u"])).length, 5_000);
      const removal = await store.begin();
      for (let index = 0; index < 5_000; index += 1) removal.delete(["u", `${index}`]);
      await removal.commit();
      deepStrictEqual(await listAll(store, ["u"]), []);
    },
    "all records of a commit have one revision or more, greater than all before": async (store) => {
      let last = 0;
      for (let round = 0; round < 5; round += 1) {
        await write(store, { a: round, b: round });
        const revisions = (await listAll(store, ["t"])).map(({ revision }) => revision);
        ok(Math.min(...revisions) > last, `${revisions.join()} after ${last}`);
        last = Math.max(...revisions);
        const removal = await store.begin();
        removal.delete(["t", "a"]);
        await removal.commit();
      }
    },
    "a rollback leaves no trace and can be called again": async (store) => {
      const transaction = await store.begin();
      transaction.put(["t", "a"], 1);
      await transaction.rollback();
      await transaction.rollback();
      deepStrictEqual(await listAll(store, ["t"]), []);
      const committed = await store.begin();
      committed.put(["t", "a"], 1);
      await committed.commit();
      await committed.rollback();
      deepStrictEqual(await valueAt(store, ["t", "a"]), 1);
    },
    "after its end a transaction refuses every call": async (store) => {
      const ends: Record<string, (transaction: StateTransaction) => Promise<void>> = {
        commit: (transaction) => transaction.commit(),
        rollback: (transaction) => transaction.rollback(),
        conflict: async (transaction) => {
          transaction.put(["t", "b"], 1, 1_000_000);
          await requireRefused("HOLDFAST_STORE_CONFLICT", () => transaction.commit());
        },
      };
      for (const [name, end] of Object.entries(ends)) {
        const transaction = await store.begin();
        transaction.put(["t", "a"], 1);
        await end(transaction);
        const calls = [
          () => transaction.load(["t", "a"]),
          () => transaction.put(["t", "a"], 2),
          () => transaction.delete(["t", "a"]),
          () => transaction.commit(),
        ];
        for (const call of calls) await requireRefused("HOLDFAST_CLOSED", call, `after ${name}`);
      }
    },
    "a commit under way refuses further writes and a second commit": async (store) => {
      const transaction = await store.begin();
      transaction.put(["t", "a"], 1);
      const committing = transaction.commit();
      await requireRefused("HOLDFAST_CLOSED", () => transaction.put(["t", "a"], 2));
      await requireRefused("HOLDFAST_CLOSED", () => transaction.commit());
      await transaction.rollback();
      await committing;
      deepStrictEqual(await valueAt(store, ["t", "a"]), 1);
    },
    "a loaded value belongs to the caller": async (store) => {
      await write(store, { a: { list: [1] } });
      const { value } = await recordAt(store, ["t", "a"]);
      (value as { list: number[] }).list.push(2);
      deepStrictEqual(await valueAt(store, ["t", "a"]), { list: [1] });
    },
  },
};
