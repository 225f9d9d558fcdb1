/** Keys, records and values as text: laws that hold for everything that may be stored. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StoreSerialization, ValidationError } from "../../src/errors.js";
import { checkJson, checkRow } from "../../src/store/json.js";
import {
  checkKey,
  compareEncoded,
  decodeKey,
  encodeKey,
  prefixRange,
  sequenceSegment,
} from "../../src/store/keys.js";
import type { JsonValue, Key } from "../../src/store/port.js";
import { decodeRecord, encodeRecord, recordHead } from "../../src/store/record.js";
import { hostileSegments } from "../../src/testing/store/suite.js";

/** Segments with more than their share of what an encoding could confuse. */
const segment = fc.oneof(
  fc.constantFrom(...hostileSegments.filter((text) => text.length < 20)),
  fc.string({ unit: "binary", minLength: 1, maxLength: 12 }),
  fc.string({
    unit: fc.constantFrom("\u0000", "\u0001", "\u0002", "a"),
    minLength: 1,
    maxLength: 5,
  }),
);
const key: fc.Arbitrary<Key> = fc.array(segment, { minLength: 1, maxLength: 5 });

const bytes = (text: string) => Buffer.from(text, "utf8");
const sign = (value: number) => Math.sign(value);

/** Path order, segment by segment in UTF-8 bytes, a prefix before what goes on. */
function comparePaths(a: Key, b: Key): number {
  for (const [index, part] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const order = Buffer.compare(bytes(part), bytes(other));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

describe("an encoded key", () => {
  it("is decoded to the key that it was made of", () => {
    fc.assert(
      fc.property(key, (path) => {
        expect(decodeKey(encodeKey(path))).toEqual(path);
      }),
    );
  });

  it("is another for every other key", () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        expect(encodeKey(a) === encodeKey(b)).toBe(comparePaths(a, b) === 0);
      }),
    );
  });

  it("is ordered as its path is, in bytes and by the comparison", () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        const order = sign(comparePaths(a, b));
        expect(sign(Buffer.compare(bytes(encodeKey(a)), bytes(encodeKey(b))))).toBe(order);
        expect(sign(compareEncoded(encodeKey(a), encodeKey(b)))).toBe(order);
      }),
      { numRuns: 2_000 },
    );
  });

  it("lies in the range of a prefix exactly where its path goes on after it", () => {
    fc.assert(
      fc.property(fc.oneof(key, fc.constant<Key>([])), key, (prefix, other) => {
        for (const path of [other, [...prefix, ...other]]) {
          const { gte, lt } = prefixRange(prefix);
          const text = encodeKey(path);
          const isIn =
            compareEncoded(text, gte) >= 0 && (lt === undefined || compareEncoded(text, lt) < 0);
          const isBelow =
            path.length > prefix.length && prefix.every((part, index) => part === path[index]);
          expect(isIn).toBe(isBelow);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("is refused where no key is written so", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 12 }), (text) => {
        let found: Key;
        try {
          found = decodeKey(text);
        } catch (error) {
          expect(error).toBeInstanceOf(StoreSerialization);
          return;
        }
        expect(encodeKey(found)).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });

  it("has counts in the order of their size", () => {
    const count = fc.maxSafeNat();
    fc.assert(
      fc.property(count, count, (a, b) => {
        const order = compareEncoded(
          encodeKey([sequenceSegment(a)]),
          encodeKey([sequenceSegment(b)]),
        );
        expect(sign(order)).toBe(sign(a - b));
      }),
    );
  });

  const bad: readonly (readonly [string, unknown])[] = [
    ["the empty path", []],
    ["an empty segment", ["a", ""]],
    ["17 segments", Array.from({ length: 17 }, () => "a")],
    ["a segment of 513 bytes", ["x".repeat(513)]],
    ["a segment of 257 two-byte characters", ["é".repeat(257)]],
    ["a lone surrogate", ["a\ud800"]],
    ["a number", [1]],
    ["a hole", Object.assign(new Array(2), { 1: "a" })],
    ["a text", "a/b"],
    ["nothing", undefined],
  ];
  it.each(bad)("cannot be made of %s", (_, path) => {
    expect(() => checkKey(path)).toThrow(ValidationError);
  });
});

/** Negative zero is the one number that JSON text does not keep. */
const plain = fc
  .jsonValue({ maxDepth: 4, noUnicodeString: false })
  .map((value): JsonValue => JSON.parse(JSON.stringify(value)));

describe("a record's text", () => {
  const record = { key, value: plain, revision: fc.maxSafeNat(), operation: segment };

  it("is read back to what it was made of", () => {
    fc.assert(
      fc.property(fc.record(record), (given) => {
        const encoded = encodeKey(given.key);
        const head = recordHead(given.revision, given.operation);
        const text = encodeRecord(encoded, head, JSON.stringify(given.value));
        expect(decodeRecord(given.key, encoded, text)).toEqual(given);
        // It is JSON as a whole, so that a stranger can read it.
        expect(JSON.parse(text)).toMatchObject({ v: 1, r: given.revision, b: given.value });
      }),
    );
  });

  it("is refused with any one character changed, removed or added", () => {
    const change = fc.constantFrom("change", "remove", "add");
    fc.assert(
      fc.property(
        fc.record(record),
        change,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 1 }),
        (given, how, at, character) => {
          const encoded = encodeKey(given.key);
          const head = recordHead(given.revision, given.operation);
          const text = encodeRecord(encoded, head, JSON.stringify(given.value));
          const index = Math.floor(at * text.length);
          const edited =
            text.slice(0, index) +
            (how === "remove" ? "" : character) +
            text.slice(how === "add" ? index : index + 1);
          fc.pre(edited !== text);
          expect(() => decodeRecord(given.key, encoded, edited)).toThrow(StoreSerialization);
        },
      ),
      { numRuns: 3_000 },
    );
  });
});

describe("the check of values", () => {
  it("passes what JSON text keeps", () => {
    fc.assert(
      fc.property(plain, (given) => {
        checkJson(given);
        checkRow(given);
        expect(JSON.parse(JSON.stringify(given))).toEqual(given);
      }),
    );
  });

  const accessor = Object.defineProperty({}, "a", { enumerable: true, get: () => 1 });
  const hidden = Object.defineProperty({}, "a", { enumerable: false, value: 1 });
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const deep = JSON.parse("[".repeat(513) + "]".repeat(513));

  /** What is refused, where, and whether a row's check refuses it too. */
  const bad: readonly (readonly [string, unknown, string, boolean])[] = [
    ["NaN", { a: [Number.NaN] }, "/a/0", true],
    ["an infinity", { a: Number.NEGATIVE_INFINITY }, "/a", true],
    ["undefined", { a: undefined }, "/a", true],
    ["a hole", Object.assign(new Array(3), { 0: 1, 2: 2 }), "/1", true],
    ["a function", { a: () => 1 }, "/a", true],
    ["a symbol", { a: Symbol("s") }, "/a", true],
    ["a bigint", { a: 1n }, "/a", true],
    ["a Map", { a: new Map() }, "/a", true],
    ["a Date", { a: new Date(0) }, "/a", true],
    ["an Error", { a: new Error("e") }, "/a", true],
    ["a typed array", { a: new Uint8Array(1) }, "/a", true],
    ["an instance of a class", { a: new (class Money {})() }, "/a", true],
    ["an array of a class", { a: new (class List extends Array {})() }, "/a", true],
    ["a lone surrogate", { a: "\ud800" }, "/a", true],
    ["a name with a lone surrogate", { "\ud800": 1 }, "/\ufffd", true],
    ["a cycle", cycle, "/0/0/0/0/0/0/0/0", true],
    ["too deep a nesting", deep, "/0/0/0/0/0/0/0/0", true],
    ["an accessor", { a: accessor }, "/a/a", false],
    ["a hidden property", { a: hidden }, "/a/a", false],
    ["a symbol as property", { a: { [Symbol("s")]: 1 } }, "/a", false],
  ];
  it.each(bad)("refuses %s and says where it is", (_, given, path, isRefusedInRows) => {
    const caught = (check: (value: unknown) => void) => {
      try {
        check(given);
      } catch (error) {
        return error;
      }
      return undefined;
    };
    const strict = caught((candidate) => checkJson(candidate)) as ValidationError;
    expect(strict).toBeInstanceOf(ValidationError);
    expect(strict.issues).toMatchObject([{ path }]);
    const row = caught((candidate) => checkRow(candidate));
    if (isRefusedInRows) expect(row).toEqual(strict);
    else expect(row).toBeUndefined();
  });

  it("is not misled by what somebody put on the prototype of all objects", () => {
    Object.assign(Object.prototype, { polluted: () => 1 });
    try {
      checkRow({ a: 1 });
      checkJson({ a: 1 });
    } finally {
      delete (Object.prototype as { polluted?: unknown }).polluted;
    }
  });

  it("takes objects of another realm, and without a prototype", () => {
    const bare = Object.assign(Object.create(null), { a: 1 });
    for (const check of [checkJson, checkRow]) (check as (value: unknown) => void)(bare);
  });
});
