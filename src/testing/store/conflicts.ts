/**
 * What a commit stands on must still hold: every way of looking at a record, times everything that
 * may happen to it meanwhile. Blind writes stand on nothing and are never refused.
 */
import { deepStrictEqual } from "node:assert/strict";
import type { Key, Revision, StateStore, StateTransaction } from "../../store/port.js";
import { type Case, type Chapter, requireRefused, valueAt, write } from "./suite.js";

const subject: Key = ["t", "subject"];

type Look = (transaction: StateTransaction, revision: Revision) => Promise<unknown> | unknown;

const looks: Readonly<Record<string, Look>> = {
  "a read": (transaction) => transaction.load(subject),
  "a read and a write": async (transaction) => {
    await transaction.load(subject);
    transaction.put(subject, "mine");
  },
  "an expectation": (transaction, revision) =>
    transaction.put(subject, "mine", revision === 0 ? "absent" : revision),
  "an expectation on a removal": (transaction, revision) => {
    if (revision === 0) transaction.put(subject, "mine", "absent");
    else transaction.delete(subject, revision);
  },
};

type Meanwhile = (store: StateStore) => Promise<void>;

async function put(store: StateStore, value: string): Promise<void> {
  await write(store, { subject: value });
}

async function remove(store: StateStore): Promise<void> {
  const transaction = await store.begin();
  transaction.delete(subject);
  await transaction.commit();
}

const moves: Readonly<Record<string, Meanwhile>> = {
  "somebody writes it": (store) => put(store, "other"),
  "somebody writes the same value": (store) => put(store, "first"),
  "somebody removes it": remove,
  "somebody removes it and writes it anew": async (store) => {
    await remove(store);
    await put(store, "first");
  },
};

const calm: Readonly<Record<string, Meanwhile>> = {
  "nothing happens": async () => {},
  "its neighbours move": (store) => write(store, { subjec: 1, "subject ": 1, subject2: 1 }),
  "a write to it is rolled back": async (store) => {
    const transaction = await store.begin();
    transaction.put(subject, "other");
    await transaction.rollback();
  },
  "it is read": async (store) => {
    const transaction = await store.begin();
    await transaction.load(subject);
    await transaction.commit();
  },
};

interface Row {
  readonly isPresent: boolean;
  readonly look: Look;
  readonly meanwhile: Meanwhile;
  readonly isRefused: boolean;
}

function rowCase({ isPresent, look, meanwhile, isRefused }: Row): Case {
  return async (store) => {
    if (isPresent) await put(store, "first");
    const revision = (await store.load(subject))?.revision ?? 0;
    const transaction = await store.begin();
    await look(transaction, revision);
    transaction.put(["t", "witness"], 1);
    await meanwhile(store);
    if (isRefused) {
      await requireRefused("HOLDFAST_STORE_CONFLICT", () => transaction.commit());
    } else {
      await transaction.commit();
    }
    deepStrictEqual(await valueAt(store, ["t", "witness"]), isRefused ? undefined : 1);
  };
}

function rows(): Record<string, Case> {
  const cases: Record<string, Case> = {};
  for (const isPresent of [true, false]) {
    for (const [lookName, look] of Object.entries(looks)) {
      const found = `${lookName} of ${isPresent ? "a record" : "an absent record"}`;
      for (const [name, meanwhile] of Object.entries(moves)) {
        // Removing what is absent moves nothing; the last of the moves leaves a record either way.
        if (!isPresent && meanwhile === remove) continue;
        const title = `${found} conflicts when ${name} meanwhile`;
        cases[title] = rowCase({ isPresent, look, meanwhile, isRefused: true });
      }
      for (const [name, meanwhile] of Object.entries(calm)) {
        const title = `${found} holds when ${name} meanwhile`;
        cases[title] = rowCase({ isPresent, look, meanwhile, isRefused: false });
      }
    }
  }
  return cases;
}

export const conflicts: Chapter = {
  title: "conflicts",
  cases: {
    ...rows(),
    "an expectation that is wrong from the start is refused": async (store) => {
      await write(store, { subject: "first" });
      const { revision = 0 } = (await store.load(subject)) ?? {};
      const wrong: Look[] = [
        (transaction) => transaction.put(subject, 1, "absent"),
        (transaction) => transaction.put(subject, 1, revision + 1),
        (transaction) => transaction.delete(subject, revision + 1),
        (transaction) => transaction.put(["t", "none"], 1, revision),
        (transaction) => transaction.delete(["t", "none"], revision),
      ];
      for (const look of wrong) {
        const transaction = await store.begin();
        look(transaction, revision);
        await requireRefused("HOLDFAST_STORE_CONFLICT", () => transaction.commit());
      }
      deepStrictEqual(await valueAt(store, subject), "first");
      deepStrictEqual(await valueAt(store, ["t", "none"]), undefined);
    },
    "an expectation is met by the record before the transaction, not by its own writes": async (
      store,
    ) => {
      await write(store, { subject: "first" });
      const transaction = await store.begin();
      transaction.delete(subject);
      transaction.put(subject, "mine", "absent");
      await requireRefused("HOLDFAST_STORE_CONFLICT", () => transaction.commit());
      deepStrictEqual(await valueAt(store, subject), "first");
    },
    "writes that stand on nothing are never refused, the later one stays": async (store) => {
      const first = await store.begin();
      const second = await store.begin();
      first.put(subject, 1);
      second.put(subject, 2);
      await second.commit();
      await first.commit();
      deepStrictEqual(await valueAt(store, subject), 1);
      const removal = await store.begin();
      removal.delete(["t", "none"]);
      removal.delete(subject);
      await removal.commit();
      deepStrictEqual(await valueAt(store, subject), undefined);
    },
    "of two that read what the other writes, one is refused": async (store) => {
      await write(store, { a: 0, b: 0 });
      const first = await store.begin();
      const second = await store.begin();
      await first.load(["t", "a"]);
      await second.load(["t", "b"]);
      first.put(["t", "b"], 1);
      second.put(["t", "a"], 1);
      const ends = await Promise.allSettled([first.commit(), second.commit()]);
      deepStrictEqual(ends.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    },
    "of many that expect one revision at once, exactly one is taken": async (store) => {
      await write(store, { subject: "first" });
      const { revision } = (await store.load(subject)) ?? {};
      const ends = await Promise.allSettled(
        Array.from({ length: 100 }, async (_, index) => {
          const transaction = await store.begin();
          transaction.put(subject, index, revision);
          await transaction.commit();
        }),
      );
      deepStrictEqual(ends.filter(({ status }) => status === "fulfilled").length, 1);
    },
    "a commit without writes confirms what it read": async (store) => {
      await write(store, { a: 1 });
      const holds = await store.begin();
      await holds.load(["t", "a"]);
      await holds.load(["t", "none"]);
      await holds.commit();
      for (const moved of ["a", "none"]) {
        const transaction = await store.begin();
        await transaction.load(["t", moved]);
        await write(store, { [moved]: 2 });
        await requireRefused("HOLDFAST_STORE_CONFLICT", () => transaction.commit(), moved);
      }
    },
  },
};
