/** Many at once: nothing is lost, nothing is torn, and there is an order in which it all happened. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import type { JsonValue, StateStore, StateTransaction } from "../../store/port.js";
import { type Chapter, listAll, valueAt, write } from "./suite.js";

/** Does the work in a transaction and commits, until no conflict comes. */
async function untilCommitted<T>(
  store: StateStore,
  work: (transaction: StateTransaction) => Promise<T>,
): Promise<T> {
  for (;;) {
    const transaction = await store.begin();
    try {
      const result = await work(transaction);
      await transaction.commit();
      return result;
    } catch (error) {
      await transaction.rollback();
      const isConflict =
        error instanceof Error && "code" in error && error.code === "HOLDFAST_STORE_CONFLICT";
      if (!isConflict) throw error;
    }
  }
}

async function numberAt(transaction: StateTransaction, name: string): Promise<number> {
  return Number((await transaction.load(["t", name]))?.value ?? 0);
}

/** A small generator of numbers, so that a run can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Observation {
  readonly writer: number;
  /** List name → its writers as they were read. */
  readonly read: ReadonlyMap<string, readonly number[]>;
  readonly appendedTo: string;
}

function writersIn(value: JsonValue | undefined): readonly number[] {
  return (value ?? []) as readonly number[];
}

/**
 * Who must have come before whom, from the lists as they ended. Every list names its writers in
 * their order, so what a transaction read tells between which two writers it looked.
 */
function precedence(
  observations: readonly Observation[],
  ended: ReadonlyMap<string, readonly number[]>,
): ReadonlyMap<number, ReadonlySet<number>> {
  const after = new Map(observations.map(({ writer }) => [writer, new Set<number>()]));
  for (const { writer, read } of observations) {
    for (const [name, seen] of read) {
      const list = ended.get(name) ?? [];
      deepStrictEqual(list.slice(0, seen.length), seen, "what was read is how the list began");
      const last = seen.at(-1);
      if (last !== undefined) after.get(last)?.add(writer);
      const next = list[seen.length];
      if (next !== undefined && next !== writer) after.get(writer)?.add(next);
    }
  }
  for (const list of ended.values()) {
    for (const [index, writer] of list.entries()) {
      const next = list[index + 1];
      if (next !== undefined) after.get(writer)?.add(next);
    }
  }
  return after;
}

/** How many of the writers can be put in an order that respects the precedence. */
function orderable(after: ReadonlyMap<number, ReadonlySet<number>>): number {
  const waiting = new Map<number, number>([...after.keys()].map((writer) => [writer, 0]));
  for (const followers of after.values()) {
    for (const follower of followers) waiting.set(follower, (waiting.get(follower) ?? 0) + 1);
  }
  const ready = [...waiting].filter(([, count]) => count === 0).map(([writer]) => writer);
  let ordered = 0;
  for (let writer = ready.pop(); writer !== undefined; writer = ready.pop()) {
    ordered += 1;
    for (const follower of after.get(writer) ?? []) {
      const left = (waiting.get(follower) ?? 0) - 1;
      waiting.set(follower, left);
      if (left === 0) ready.push(follower);
    }
  }
  return ordered;
}

export const concurrency: Chapter = {
  title: "concurrency",
  cases: {
    "1,000 commits at once all land": async (store) => {
      const count = 1_000;
      await Promise.all(
        Array.from({ length: count }, async (_, index) => {
          const transaction = await store.begin();
          transaction.put(["t", `${index}`], index);
          transaction.put(["u", `${index}`], index);
          await transaction.commit();
        }),
      );
      const records = [...(await listAll(store, ["t"])), ...(await listAll(store, ["u"]))];
      deepStrictEqual(records.length, 2 * count);
      for (const { key, value } of records) deepStrictEqual(`${value}`, key[1]);
    },
    "no increment of a counter is lost": async (store) => {
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          for (let round = 0; round < 10; round += 1) {
            await untilCommitted(store, async (transaction) => {
              const value = await numberAt(transaction, "counter");
              transaction.put(["t", "counter"], value + 1);
            });
          }
        }),
      );
      deepStrictEqual(await valueAt(store, ["t", "counter"]), 200);
    },
    "a view is whole while others move money": async (store) => {
      const accounts = ["a", "b", "c", "d", "e"];
      await write(store, Object.fromEntries(accounts.map((name) => [name, 100])));
      const pick = random(7);
      let isOver = false;
      const look = async () => {
        let looks = 0;
        while (!isOver || looks === 0) {
          const transaction = await store.begin();
          let total = 0;
          for (const name of accounts) total += await numberAt(transaction, name);
          await transaction.rollback();
          deepStrictEqual(total, 500);
          looks += 1;
          // A store that answers without waiting for anything would leave the others no turn.
          await setImmediate();
        }
      };
      const movers = Array.from({ length: 10 }, async () => {
        for (let round = 0; round < 20; round += 1) {
          const from = accounts[pick(5)] ?? "a";
          const to = accounts[pick(5)] ?? "b";
          if (from === to) continue;
          await untilCommitted(store, async (transaction) => {
            const [left, right] = [
              await numberAt(transaction, from),
              await numberAt(transaction, to),
            ];
            transaction.put(["t", from], left - 1);
            transaction.put(["t", to], right + 1);
          });
        }
      });
      const moved = Promise.all(movers).finally(() => {
        isOver = true;
      });
      await Promise.all([look(), moved]);
    },
    "what was read and appended can be put in one order": async (store) => {
      const names = ["a", "b", "c", "d"];
      const pick = random(11);
      const observations: Observation[] = [];
      let writers = 0;
      await Promise.all(
        Array.from({ length: 12 }, async () => {
          for (let round = 0; round < 25; round += 1) {
            writers += 1;
            const writer = writers;
            const looked = [names[pick(4)] ?? "a", names[pick(4)] ?? "b"];
            const appendedTo = names[pick(4)] ?? "c";
            const read = await untilCommitted(store, async (transaction) => {
              const seen = new Map<string, readonly number[]>();
              for (const name of new Set([...looked, appendedTo])) {
                seen.set(name, writersIn((await transaction.load(["t", name]))?.value));
              }
              transaction.put(["t", appendedTo], [...(seen.get(appendedTo) ?? []), writer]);
              return seen;
            });
            observations.push({ writer, read, appendedTo });
          }
        }),
      );
      const ended = new Map<string, readonly number[]>();
      for (const name of names) ended.set(name, writersIn(await valueAt(store, ["t", name])));
      const appended = [...ended.values()].reduce((total, list) => total + list.length, 0);
      deepStrictEqual(appended, writers, "every append is there once");
      const ordered = orderable(precedence(observations, ended));
      ok(ordered === writers, `${writers - ordered} transactions are in a circle`);
    },
  },
};
