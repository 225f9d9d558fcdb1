/** JSON that keeps the order of its members: the laws of reading, printing, storing and editing it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ValidationError } from "../../src/errors.js";
import { checkJson } from "../../src/store/json.js";
import {
  equalsOrdered,
  fromPlain,
  fromStored,
  type OrderedJson,
  OrderedObject,
  parseOrdered,
  printOrdered,
  toPlain,
  toStored,
} from "../../src/store/ordered-json.js";

/** Names that plain objects treat in their own way. */
const name = fc.oneof(
  fc.constantFrom(
    "10",
    "9",
    "0",
    "-1",
    "01",
    "__proto__",
    "constructor",
    "toString",
    "",
    "😀",
    "é",
    "e\u0301",
  ),
  fc.string({ unit: "grapheme", maxLength: 4 }),
);
const leaf = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
  fc.string({ unit: "grapheme", maxLength: 8 }),
);
const { ordered } = fc.letrec<{ ordered: OrderedJson }>((tie) => ({
  ordered: fc.oneof(
    { maxDepth: 4, depthIdentifier: "ordered" },
    leaf,
    fc.array(tie("ordered"), { maxLength: 4 }),
    fc
      .uniqueArray(fc.tuple(name, tie("ordered")), { maxLength: 5, selector: ([first]) => first })
      .map((entries) => new OrderedObject(entries)),
  ),
}));

describe("ordered JSON", () => {
  it("is read from its text as it was printed", () => {
    fc.assert(
      fc.property(ordered, (value) => {
        const text = printOrdered(value);
        expect(equalsOrdered(parseOrdered(text), value)).toBe(true);
        expect(printOrdered(parseOrdered(text))).toBe(text);
      }),
    );
  });

  it("is stored as JSON that a plain reader does not reorder", () => {
    fc.assert(
      fc.property(ordered, (value) => {
        const stored = toStored(value);
        checkJson(stored);
        expect(equalsOrdered(fromStored(JSON.parse(JSON.stringify(stored))), value)).toBe(true);
      }),
    );
  });

  it("says of each value what plain JSON says, but for the order", () => {
    fc.assert(
      fc.property(ordered, (value) => {
        expect(toPlain(value)).toEqual(JSON.parse(printOrdered(value)));
      }),
    );
  });

  it("counts the order when it compares", () => {
    const a = parseOrdered('{"b":1,"a":2,"10":3,"9":4}');
    expect(printOrdered(a)).toBe('{"b":1,"a":2,"10":3,"9":4}');
    expect(equalsOrdered(a, parseOrdered('{"a":2,"b":1,"10":3,"9":4}'))).toBe(false);
    expect(equalsOrdered(a, fromPlain({ b: 1, a: 2, 10: 3, 9: 4 }))).toBe(false);
  });

  it("takes names of prototypes as data", () => {
    const value = parseOrdered('{"__proto__":{"polluted":true},"constructor":1}') as OrderedObject;
    expect([...value.names()]).toEqual(["__proto__", "constructor"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(toPlain(value))).toBe(Object.prototype);
  });

  it("is edited by copies: a member keeps its place, a new one comes last", () => {
    const value = parseOrdered('{"b":1,"a":2}') as OrderedObject;
    expect(printOrdered(value.with("b", 9))).toBe('{"b":9,"a":2}');
    expect(printOrdered(value.with("0", 9))).toBe('{"b":1,"a":2,"0":9}');
    expect(printOrdered(value.without("b"))).toBe('{"a":2}');
    expect(printOrdered(value)).toBe('{"b":1,"a":2}');
  });

  const bad: readonly (readonly [string, string, RegExp])[] = [
    ["nothing", "", /offset|0/],
    ["a trailing comma", '{"a":1,}', /offset/],
    ["a comment", '{"a":1} // no', /offset/],
    ["two values", "1 2", /offset/],
    ["a duplicate name", '{"a":1,"b":{"c":1,"c":2}}', /\/b\/c is a duplicate at offset 18/],
    ["a number beyond doubles", "[1e999]", /\/0 is a number beyond the range/],
    ["a lone surrogate", '"\ud800"', /lone surrogate/],
    ["an escaped lone surrogate", '["\\ud800"]', /\/0 is a string with a lone surrogate/],
    ["513 levels", "[".repeat(513), /nested deeper than 512 at offset 512/],
    ["a leading zero", "[01]", /offset/],
    ["NaN", "NaN", /offset/],
    ["a raw line end in a string", '"a\nb"', /offset/],
  ];
  it.each(bad)("is refused where the text has %s, with the place", (_, text, message) => {
    expect(() => parseOrdered(text)).toThrow(ValidationError);
    expect(() => parseOrdered(text)).toThrow(message);
  });

  it("takes exactly what the platform's parser takes, but for duplicates and depth", () => {
    const shape = fc.string({
      unit: fc.constantFrom(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "1",
        "-",
        "e",
        ".",
        "t",
        "\\",
        " ",
        "\n",
      ),
      maxLength: 12,
    });
    const isTaken = (read: () => unknown) => {
      try {
        read();
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(fc.oneof(shape, fc.json()), (text) => {
        if (isTaken(() => parseOrdered(text))) expect(isTaken(() => JSON.parse(text))).toBe(true);
        else {
          const plain = isTaken(() => JSON.parse(text));
          if (plain) expect(() => parseOrdered(text)).toThrow(/duplicate|range|surrogate/);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ["an object that is no list of entries", { a: 1 }],
    ["entries with more beside them", { entries: [], a: 1 }],
    ["a pair of three", { entries: [["a", 1, 2]] }],
    [
      "a name twice",
      {
        entries: [
          ["a", 1],
          ["a", 2],
        ],
      },
    ],
    ["a name that is a number", { entries: [[1, 1]] }],
  ] as const)("is not read from %s", (_, stored) => {
    expect(() => fromStored(stored as never)).toThrow(ValidationError);
  });
});
