/** docs/format.md against the bytes that are written. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ID_BYTES_MAX, JSON_DEPTH_MAX } from "../../src/limits.js";
import { emptyLedger } from "../../src/sessions/records.js";
import { REVISION_RANGE, STORE_FORMAT } from "../../src/store/identity.js";
import {
  compareEncoded,
  decodeKey,
  decodeRecord,
  encodeKey,
  encodeRecord,
  type JsonObject,
  levelStore,
  RECORD_VERSION,
  recordHead,
  sequenceSegment,
} from "../../src/store/index.js";
import { KEY_SEGMENTS_MAX } from "../../src/store/keys.js";
import { acceptPrompt, echoExecutor, World } from "../world.js";
import { codeBlocks, readPage, section, tableRows } from "./page.js";

const page = readPage("format.md");
const block = (language: string): string => (codeBlocks(page, language)[0] ?? "").trim();
const names = (cell = ""): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
const fieldsUnder = (heading: string): readonly string[] =>
  tableRows(section(page, heading), "field").flatMap(([cell]) => names(cell));

describe("docs/format.md: versions", () => {
  it("are those of this release", () => {
    const versions = tableRows(page, "what").map(([, version]) => Number(version));
    expect(versions).toEqual([STORE_FORMAT, RECORD_VERSION]);
  });

  it("and figures are those of the code", () => {
    expect(page).toContain(`1 to ${KEY_SEGMENTS_MAX} segments`);
    expect(page).toContain(`1 to ${ID_BYTES_MAX} bytes of UTF-8`);
    expect(page).toContain(`at most ${JSON_DEPTH_MAX} levels deep`);
    expect(page).toContain(`ranges of ${REVISION_RANGE.toLocaleString("en-US")}`);
  });
});

describe("docs/format.md: the directory", () => {
  it("holds what the page names, and the identity file has its fields", async () => {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-format-"));
    try {
      const store = await levelStore(directory);
      const paths = tableRows(page, "path").flatMap(([cell]) => names(cell));
      const found = readdirSync(directory, { withFileTypes: true });
      expect(found.map((entry) => entry.name + (entry.isDirectory() ? "/" : "")).sort()).toEqual(
        [...paths].sort(),
      );
      const text = readFileSync(join(directory, "holdfast.json"), "utf8");
      const identity = JSON.parse(text);
      expect(fieldsUnder("The identity file")).toEqual(Object.keys(identity));
      // The page's example is laid out as the file is.
      expect(`${JSON.stringify(JSON.parse(block("json")), undefined, 2)}\n`).toBe(
        `${block("json")}\n`,
      );
      expect(Object.keys(JSON.parse(block("json")))).toEqual(Object.keys(identity));
      expect(text).toBe(`${JSON.stringify(identity, undefined, 2)}\n`);
      await store.close();
      expect(readdirSync(directory)).not.toContain("holder.json");
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

describe("docs/format.md: keys", () => {
  const key: readonly string[] = JSON.parse(block("key"));
  const bytes = Buffer.from(block("hex").replace(/\s+/g, ""), "hex");

  it("the worked example is the encoding of its path", () => {
    expect(key).toEqual(["session", "a\u0000b", "input", sequenceSegment(7)]);
    expect(Buffer.from(encodeKey(key)).toString("hex")).toBe(bytes.toString("hex"));
    expect(decodeKey(bytes.toString("utf8"))).toEqual(key);
  });

  it("the table of escapes is what a reader needs", () => {
    const character = (code: string) => String.fromCodePoint(Number.parseInt(code.slice(2), 16));
    const characters = (cell: string) => cell.split(" ").map(character).join("");
    const escapes = tableRows(page, "in a segment").filter(([from = ""]) => from.startsWith("U+"));
    expect(escapes).toHaveLength(2);
    for (const [from = "", to = ""] of escapes) {
      expect(encodeKey([characters(from)])).toBe(`${characters(to)}\u0000`);
    }
  });

  it("are in the order of their bytes", () => {
    const paths = [
      ["a"],
      ["a", "b"],
      ["a\u0000"],
      ["a\u0001"],
      ["a\u0001b"],
      ["ab"],
      ["\u{1f600}"],
    ];
    const encoded = paths.map(encodeKey);
    const byBytes = [...encoded].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(byBytes).toEqual(encoded);
    expect([...encoded].sort(compareEncoded)).toEqual(encoded);
  });
});

describe("docs/format.md: records", () => {
  const key: readonly string[] = JSON.parse(block("key"));
  const text = block("record");

  it("the worked example is what is written for it", () => {
    const head = recordHead(5, "op-1");
    expect(encodeRecord(encodeKey(key), head, '{"phase":"queued"}')).toBe(text);
    expect(decodeRecord(key, encodeKey(key), text)).toEqual({
      key,
      revision: 5,
      operation: "op-1",
      value: { phase: "queued" },
    });
  });

  it("the checksum follows from what the page says about it", () => {
    const { c, b } = JSON.parse(text);
    const head = text.slice(0, text.indexOf(',"c"'));
    const sum = crc32(Buffer.from(encodeKey(key) + head + JSON.stringify(b), "utf8"));
    expect(sum.toString(16).padStart(8, "0")).toBe(c);
  });

  it("the fields of the envelope are those of the table, in their order", () => {
    expect(fieldsUnder("Records")).toEqual(Object.keys(JSON.parse(text)));
  });
});

describe("docs/format.md: rows", () => {
  /** A pattern of the page's table with the fields that go with it. */
  const kinds = tableRows(page, "key").map(([path = "", fields = ""]) => {
    const segments = path.split(" / ").map((segment) => segment.replaceAll("`", ""));
    return { path, segments, fields: names(fields), seen: new Set<string>() };
  });

  function kindOf(key: readonly string[]) {
    return kinds.filter(({ segments }) =>
      segments[1] === "owner"
        ? key[0] === segments[0]
        : segments.length === key.length &&
          segments.every((name, at) => {
            if (name === "{sequence}") return /^\d{20}$/.test(key[at] ?? "");
            return name.startsWith("{") || name === key[at];
          }),
    );
  }

  it("are of the kinds that the page names, with the fields that it names, and each is written", async () => {
    const world = new World();
    const first = await world.open();
    const session = await first.sessions.open("s", { executor: echoExecutor() });
    await (await acceptPrompt(session, "a", "k-1")).completion;
    await session.appendContext({ content: "c", idempotencyKey: "c-1" });
    await session.unregister();
    const waiting = await first.sessions.open("s");
    await acceptPrompt(waiting, "b", "k-2");
    await waiting.accept({ kind: "prompt", text: "e", durability: "ephemeral" });
    world.restart();
    await (await world.open()).sessions.open("s");

    for (const { key, value } of await world.rows()) {
      const [kind, ...others] = kindOf(key);
      expect(others, key.join("/")).toEqual([]);
      expect(kind?.fields, key.join("/")).toEqual(
        expect.arrayContaining(Object.keys(value as JsonObject)),
      );
      for (const name of Object.keys(value as JsonObject)) kind?.seen.add(name);
    }
    for (const { path, fields, seen } of kinds)
      expect([...seen].sort(), path).toEqual([...fields].sort());
  });

  it("have the ledger that the page names", () => {
    expect(fieldsUnder("The ledger of a session")).toEqual(Object.keys(emptyLedger));
  });

  it("of one commit have one revision and one operation", async () => {
    const world = new World();
    const session = await (await world.open()).sessions.open("s");
    await acceptPrompt(session, "a", "k-1");
    const operations = new Map<number, Set<string>>();
    for (const { revision, operation } of await world.rows()) {
      operations.set(revision, (operations.get(revision) ?? new Set()).add(operation));
    }
    expect([...operations.values()].every(({ size }) => size === 1)).toBe(true);
  });
});
