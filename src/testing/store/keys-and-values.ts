/** Keys are data, values are JSON, and nothing else gets in. */
import { deepStrictEqual } from "node:assert/strict";
import type { JsonValue, Key } from "../../store/port.js";
import {
  type Chapter,
  hostileSegments,
  listAll,
  recordAt,
  requireRefused,
  valueAt,
} from "./suite.js";

const values: Readonly<Record<string, JsonValue>> = {
  null: null,
  false: false,
  zero: 0,
  "the smallest number": 5e-324,
  "the largest number": 1.7976931348623157e308,
  "a whole number past 2^53": 2 ** 60,
  "an empty text": "",
  "a text of control characters": "\u0000\u0001\u001f\u007f\u2028",
  "an astral text": "\ud83d\ude00 e\u0301",
  "an empty array": [],
  "an empty object": {},
  "nested values": { a: [{ b: [null, { c: "d" }] }] },
  "integer-like names in their order": { "10": 1, "9": 2, b: 3, a: 4 },
  "a long text": "x".repeat(300_000),
};

const notJson: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "a bigint": 1n,
  "a function": () => 1,
  "a symbol": Symbol("s"),
  "a Map": new Map([["a", 1]]),
  "a Set": new Set([1]),
  "a Date": new Date(0),
  "an Error": new Error("e"),
  "a class instance": new (class Point {
    x = 1;
  })(),
  "a typed array": new Uint8Array([1]),
  "a lone surrogate": "\ud800",
  "a lone surrogate in a name": { "\udc00": 1 },
  "undefined in an object": { a: undefined },
  "a hole in an array": Object.assign([], { length: 1 }),
  "NaN deep inside": { a: [{ b: Number.NaN }] },
};

const badKeys: Readonly<Record<string, readonly unknown[]>> = {
  "no segments": [],
  "an empty segment": ["t", ""],
  "a segment of 513 bytes": ["t", "x".repeat(513)],
  "a segment of 514 bytes in 257 characters": ["t", "\u00e9".repeat(257)],
  "a lone surrogate": ["t", "\ud800"],
  "a number": ["t", 1],
  "seventeen segments": Array.from({ length: 17 }, () => "t"),
};

export const keysAndValues: Chapter = {
  title: "keys and values",
  cases: {
    "no two paths collide, and each comes back as it was": async (store) => {
      const keys: Key[] = [];
      for (const first of hostileSegments) {
        keys.push(["t", first]);
        for (const second of hostileSegments.slice(0, 16)) keys.push(["t", first, second]);
      }
      for (let start = 0; start < keys.length; start += 100) {
        const transaction = await store.begin();
        for (const key of keys.slice(start, start + 100)) transaction.put(key, [...key]);
        await transaction.commit();
      }
      for (const key of keys) {
        const record = await recordAt(store, key);
        deepStrictEqual(record.value, key);
        deepStrictEqual(record.key, key);
      }
      deepStrictEqual((await listAll(store, ["t"])).length, keys.length);
    },
    "every kind of JSON comes back as it was": async (store) => {
      for (const [name, value] of Object.entries(values)) {
        const transaction = await store.begin();
        transaction.put(["t", name], value);
        await transaction.commit();
        deepStrictEqual(await valueAt(store, ["t", name]), value, name);
      }
    },
    "a value is taken as it is at the call: later changes do not reach it": async (store) => {
      const value = { list: [1] };
      const transaction = await store.begin();
      transaction.put(["t", "a"], value);
      value.list.push(2);
      await transaction.commit();
      deepStrictEqual(await valueAt(store, ["t", "a"]), { list: [1] });
    },
    "what is no JSON is refused at once, and the transaction goes on without it": async (store) => {
      const transaction = await store.begin();
      const cyclic: { self?: unknown } = {};
      cyclic.self = cyclic;
      for (const [name, value] of Object.entries({ ...notJson, "a cycle": cyclic })) {
        await requireRefused(
          "HOLDFAST_VALIDATION",
          () => transaction.put(["t", "bad"], value as JsonValue),
          name,
        );
      }
      transaction.put(["t", "good"], 1);
      await transaction.commit();
      deepStrictEqual(await valueAt(store, ["t", "bad"]), undefined);
      deepStrictEqual(await valueAt(store, ["t", "good"]), 1);
    },
    "what is no key is refused by every call": async (store) => {
      for (const [name, given] of Object.entries(badKeys)) {
        const key = given as Key;
        const transaction = await store.begin();
        await requireRefused("HOLDFAST_VALIDATION", () => store.load(key), name);
        await requireRefused("HOLDFAST_VALIDATION", () => store.claim(key), name);
        await requireRefused("HOLDFAST_VALIDATION", () => transaction.load(key), name);
        await requireRefused("HOLDFAST_VALIDATION", () => transaction.put(key, 1), name);
        await requireRefused("HOLDFAST_VALIDATION", () => transaction.delete(key), name);
        await requireRefused("HOLDFAST_VALIDATION", () =>
          store.list({ prefix: ["t"], after: key, limit: 1 }),
        );
        await transaction.rollback();
      }
    },
    "a record names the operation that wrote it": async (store) => {
      const transaction = await store.begin({ operation: "operation-1" });
      transaction.put(["t", "a"], 1);
      await transaction.commit();
      deepStrictEqual((await recordAt(store, ["t", "a"])).operation, "operation-1");
      await requireRefused("HOLDFAST_VALIDATION", () => store.begin({ operation: "" }));
    },
    "the store's own rows cannot be written": async (store) => {
      const transaction = await store.begin();
      await requireRefused("HOLDFAST_VALIDATION", () => transaction.put(["store"], 1));
      await requireRefused("HOLDFAST_VALIDATION", () => transaction.put(["lease", "a"], 1));
      await transaction.rollback();
    },
  },
};
