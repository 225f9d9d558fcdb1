/** Order is path order by the bytes of UTF-8; pages are complete and never repeat. */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { Key, StateStore } from "../../store/port.js";
import { type Chapter, hostileSegments, listAll, requireRefused } from "./suite.js";

async function fill(store: StateStore, keys: readonly Key[]): Promise<void> {
  const transaction = await store.begin();
  for (const key of keys) transaction.put(key, 0);
  await transaction.commit();
}

/** Path order as the port defines it, by another way than an encoding. */
function comparePaths(a: Key, b: Key): number {
  for (const [place, segment] of a.entries()) {
    const other = b[place];
    if (other === undefined) return 1;
    const order = Buffer.compare(Buffer.from(segment), Buffer.from(other));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const count = 600;
const many: readonly Key[] = Array.from({ length: count }, (_, index) => [
  "t",
  String(index).padStart(4, "0"),
]);

export const orderAndPaging: Chapter = {
  title: "order and paging",
  cases: {
    "a list is in path order, a path before the paths that it begins": async (store) => {
      const keys = hostileSegments.flatMap((segment): Key[] => [
        ["t", segment],
        ["t", segment, "b"],
        ["t", segment, "a", "c"],
      ]);
      await fill(store, [...keys].reverse());
      const listed = (await listAll(store, ["t"], 7)).map(({ key }) => key);
      deepStrictEqual(listed, [...keys].sort(comparePaths));
    },
    "a prefix takes what is below it, not itself and not its neighbours": async (store) => {
      await fill(store, [
        ["t"],
        ["t", "a"],
        ["t", "a", "1"],
        ["t", "a", "2", "x"],
        ["t", "a\u0000"],
        ["t", "aa"],
        ["t", "b"],
        ["u", "a"],
      ]);
      const below = (await listAll(store, ["t", "a"])).map(({ key }) => key);
      deepStrictEqual(below, [
        ["t", "a", "1"],
        ["t", "a", "2", "x"],
      ]);
      deepStrictEqual(await listAll(store, ["t", "c"]), []);
    },
    "the empty prefix takes everything": async (store) => {
      await fill(store, [["t", "a"], ["u"]]);
      const all = (await listAll(store, [])).map(({ key }) => key.join("/"));
      ok(all.includes("t/a") && all.includes("u"));
    },
    "pages of every size are complete and repeat nothing": async (store) => {
      await fill(store, many);
      for (const limit of [1, 2, 99, 255, 256]) {
        const rows = limit === 1 ? many.slice(0, 20) : many;
        const prefix: Key = ["t"];
        if (limit > 1) {
          const listed = (await listAll(store, prefix, limit)).map(({ key }) => key);
          deepStrictEqual(listed, rows, `pages of ${limit}`);
          continue;
        }
        let after: Key | undefined;
        for (const key of rows) {
          const page = await store.list({ prefix, after, limit });
          deepStrictEqual(page.records[0]?.key, key);
          after = page.next;
        }
      }
    },
    "the last page has no next, a full one too": async (store) => {
      await fill(store, many.slice(0, 4));
      const page = await store.list({ prefix: ["t"], limit: 4 });
      deepStrictEqual([page.records.length, page.next], [4, undefined]);
      const short = await store.list({ prefix: ["t"], limit: 3 });
      deepStrictEqual(short.next, many[2]);
    },
    "a page goes on after a key that is gone, or never was": async (store) => {
      await fill(store, many.slice(0, 6));
      const transaction = await store.begin();
      transaction.delete(["t", "0002"]);
      await transaction.commit();
      for (const after of ["0002", "0001\u0000"]) {
        const page = await store.list({ prefix: ["t"], after: ["t", after], limit: 2 });
        deepStrictEqual(
          page.records.map(({ key }) => key[1]),
          ["0003", "0004"],
        );
      }
    },
    "after a key outside the prefix: all of it, or nothing": async (store) => {
      await fill(store, [["s"], ["t", "a"], ["t", "b"], ["u"]]);
      const before = await store.list({ prefix: ["t"], after: ["s"], limit: 9 });
      deepStrictEqual(before.records.length, 2);
      const behind = await store.list({ prefix: ["t"], after: ["u"], limit: 9 });
      deepStrictEqual(behind, { records: [] });
    },
    "limits from 1 to 256 are taken, others are refused": async (store) => {
      for (const limit of [0, 257, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        await requireRefused("HOLDFAST_VALIDATION", () => store.list({ prefix: ["t"], limit }));
      }
      await store.list({ prefix: ["t"], limit: 1 });
      await store.list({ prefix: ["t"], limit: 256 });
    },
  },
};
