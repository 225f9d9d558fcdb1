/** Leases: who claims last may write, everybody before is refused, and others notice nothing. */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { Key, Lease, StateStore } from "../../store/port.js";
import { type Chapter, hostileSegments, listAll, requireRefused, valueAt } from "./suite.js";

async function writeUnder(store: StateStore, lease: Lease, value: number): Promise<void> {
  const transaction = await store.begin({ lease });
  transaction.put(["t", "a"], value);
  await transaction.commit();
}

export const leases: Chapter = {
  title: "leases",
  cases: {
    "every claim raises the epoch of its owner alone": async (store) => {
      const first = await store.claim(["owner", "a"]);
      const second = await store.claim(["owner", "a"]);
      ok(second.epoch > first.epoch);
      deepStrictEqual(second.owner, ["owner", "a"]);
      await writeUnder(store, await store.claim(["owner", "b"]), 1);
      await writeUnder(store, second, 2);
      deepStrictEqual(await valueAt(store, ["t", "a"]), 2);
    },
    "a lease that is over commits nothing": async (store) => {
      const old = await store.claim(["owner", "a"]);
      await writeUnder(store, old, 1);
      const lease = await store.claim(["owner", "a"]);
      await requireRefused("HOLDFAST_STORE_FENCED", () => writeUnder(store, old, 2));
      deepStrictEqual(await valueAt(store, ["t", "a"]), 1);
      await writeUnder(store, lease, 3);
      deepStrictEqual(await valueAt(store, ["t", "a"]), 3);
    },
    "a claim ends a transaction that began before it": async (store) => {
      const old = await store.claim(["owner", "a"]);
      const transaction = await store.begin({ lease: old });
      transaction.put(["t", "a"], 1);
      await store.claim(["owner", "a"]);
      await requireRefused("HOLDFAST_STORE_FENCED", () => transaction.commit());
      deepStrictEqual(await valueAt(store, ["t", "a"]), undefined);
    },
    "reads under a lease that is over are not confirmed": async (store) => {
      const old = await store.claim(["owner", "a"]);
      const transaction = await store.begin({ lease: old });
      await transaction.load(["t", "a"]);
      await store.claim(["owner", "a"]);
      await requireRefused("HOLDFAST_STORE_FENCED", () => transaction.commit());
    },
    "a lease that nobody was given commits nothing": async (store) => {
      const { epoch } = await store.claim(["owner", "a"]);
      for (const lease of [
        { owner: ["owner", "a"], epoch: epoch + 1 },
        { owner: ["owner", "never claimed"], epoch: 1 },
      ]) {
        await requireRefused("HOLDFAST_STORE_FENCED", () => writeUnder(store, lease, 1));
      }
      deepStrictEqual(await valueAt(store, ["t", "a"]), undefined);
    },
    "what is no lease is refused": async (store) => {
      for (const lease of [
        { owner: ["owner", ""], epoch: 1 },
        { owner: [] as Key, epoch: 1 },
        { owner: ["owner", "a"], epoch: 1.5 },
        { owner: ["owner", "a"], epoch: Number.NaN },
      ]) {
        await requireRefused("HOLDFAST_VALIDATION", () => store.begin({ lease }));
      }
    },
    "owners of any name are told apart": async (store) => {
      const owners = hostileSegments.filter((segment) => Buffer.byteLength(segment) < 500);
      const held = new Map<string, Lease>();
      for (const owner of owners) held.set(owner, await store.claim(["owner", owner]));
      for (const owner of owners.slice(0, 8)) await store.claim(["owner", owner]);
      for (const [index, owner] of owners.entries()) {
        const lease = held.get(owner);
        ok(lease);
        if (index < 8) {
          await requireRefused("HOLDFAST_STORE_FENCED", () => writeUnder(store, lease, index));
        } else {
          await writeUnder(store, lease, index);
        }
      }
    },
    "of a hundred claims at once, the highest epoch alone may write": async (store) => {
      const claims = await Promise.all(
        Array.from({ length: 100 }, () => store.claim(["owner", "a"])),
      );
      const epochs = claims.map(({ epoch }) => epoch);
      deepStrictEqual(new Set(epochs).size, 100);
      const highest = Math.max(...epochs);
      const ends = await Promise.allSettled(
        claims.map((lease) => writeUnder(store, lease, lease.epoch)),
      );
      deepStrictEqual(ends.filter(({ status }) => status === "fulfilled").length, 1);
      deepStrictEqual(await valueAt(store, ["t", "a"]), highest);
    },
    "commits that race with a claim are before it or refused": async (store) => {
      const old = await store.claim(["owner", "a"]);
      const work = Array.from({ length: 200 }, async (_, index) => {
        const transaction = await store.begin({ lease: old });
        transaction.put(["u", `${index}`], index);
        await transaction.commit();
      });
      const claim = store.claim(["owner", "a"]);
      const ends = await Promise.allSettled(work);
      const lease = await claim;
      const taken = ends.filter(({ status }) => status === "fulfilled").length;
      deepStrictEqual((await listAll(store, ["u"])).length, taken);
      await requireRefused("HOLDFAST_STORE_FENCED", () => writeUnder(store, old, 1));
      await writeUnder(store, lease, 2);
    },
  },
};
