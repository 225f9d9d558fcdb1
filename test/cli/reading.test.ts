/** Commands that look: `sessions`, `inputs`. They find by beginnings, and change no record. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exitCodes } from "../../src/cli/exit-codes.js";
import { levelStore } from "../../src/store/index.js";
import { Directory, echo, type JsonLine, shell } from "./run-cli.js";

/** One store for all: `order-1`, `order-2` and `orders` with inputs, `waits` with inputs that wait. */
let directory: Directory;
let consumed: readonly JsonLine[];

beforeAll(async () => {
  directory = new Directory();
  for (const id of ["order-1", "order-2", "orders"]) {
    await directory.run(
      ["session", id, "--exec", ...echo],
      `{"text":"first of ${id}","idempotencyKey":"k-1"}\nsecond\n`,
    );
  }
  await directory.run(["session", "waits"], "one\ntwo\n");
  consumed = (await directory.json(["inputs", "list", "order-1"])).values;
});
afterAll(() => directory.remove());

describe("sessions list", () => {
  it("shows each session on a line, in the order of ids", async () => {
    const run = await directory.run(["sessions", "list"]);
    expect(run).toMatchObject({ code: exitCodes.ok, stderr: "" });
    const lines = run.stdout.trim().split("\n");
    expect(lines.map((line) => line.split("  ")[0])).toEqual([
      "order-1",
      "order-2",
      "orders",
      "waits",
    ]);
    expect(lines[3]).toMatch(/^waits {2}idle {2}2 inputs, 2 unfinished {2}0 messages {2}\d{4}-/);
  });

  it("gives the same as JSON, a session a line", async () => {
    const { values } = await directory.json(["sessions", "list"]);
    expect(values).toMatchObject([
      { id: "order-1", state: "idle", inputs: { admitted: 2, unfinished: 0 } },
      { id: "order-2" },
      { id: "orders" },
      { id: "waits", inputs: { admitted: 2, unfinished: 2 } },
    ]);
  });

  it("takes --json and --store after the command too", async () => {
    const run = await directory.run(["sessions", "list", "--json", "--store", ".holdfast"]);
    expect(
      run.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).id),
    ).toHaveLength(4);
  });
});

describe("sessions show", () => {
  it("shows a session with its last boundaries", async () => {
    const run = await directory.run(["sessions", "show", "orders"]);
    expect(run.code).toBe(exitCodes.ok);
    expect(run.stdout).toContain("inputs     2 admitted, 0 unfinished (2 consumed)");
    expect(run.stdout).toContain("receipt 0: 1 input consumed at");
    expect(run.stdout).toContain("user       first of orders");
    expect(run.stderr).toBe("All of its inputs: holdfast inputs list orders\n");
  });

  it("as JSON is one value", async () => {
    const { values, stderr } = await directory.json(["sessions", "show", "orders"]);
    expect(values).toMatchObject([{ id: "orders", phases: { consumed: 2 }, boundaries: [{}, {}] }]);
    expect(stderr).toBe("");
  });
});

describe("inputs list", () => {
  it("shows each input on a line", async () => {
    const run = await directory.run(["inputs", "list", "order-1"]);
    expect(run).toMatchObject({ code: exitCodes.ok, stderr: "" });
    const [first, second] = run.stdout.split("\n");
    expect(first).toMatch(
      /^ {5}0 {2}[\da-f-]{36} {2}consumed {3}prompt {2}k-1 {2}first of order-1$/,
    );
    expect(second).toMatch(/^ {5}1 {2}[\da-f-]{36} {2}consumed {3}prompt {2}- {2}second$/);
  });

  it("gives the same as JSON, and by phase", async () => {
    expect(consumed).toMatchObject([
      { sequence: 0, phase: "consumed", kind: "prompt", attempts: 1, recoveries: 0 },
      { sequence: 1, phase: "consumed", payload: { kind: "prompt", text: "second" } },
    ]);
    const queued = await directory.json(["inputs", "list", "waits", "--phase", "queued"]);
    expect(queued.values).toHaveLength(2);
    const none = await directory.run(["inputs", "list", "waits", "--phase", "consumed"]);
    expect(none).toMatchObject({
      code: exitCodes.ok,
      stdout: "",
      stderr: "No inputs that are consumed.\n",
    });
  });

  it("refuses a phase that there is none of", async () => {
    const run = await directory.run(["inputs", "list", "waits", "--phase", "eaten"]);
    expect(run).toMatchObject({ code: exitCodes.usage, stdout: "" });
    expect(run.stderr).toContain("expected one of accepted, queued, staged");
  });
});

describe("inputs show", () => {
  it("shows an input with its history, completion and receipt", async () => {
    const id = String(consumed[0]?.inputId);
    const run = await directory.run(["inputs", "show", "order-1", id]);
    expect(run.code).toBe(exitCodes.ok);
    expect(run.stdout).toContain(`input      ${id}, number 0 of session order-1`);
    expect(run.stdout).toContain('completion {"type":"completed","result":"first of order-1"}');
    expect(run.stdout).toMatch(/receipt {4}turn [\da-f-]{36} receipt 0, 1 input\b/);
    expect(run.stdout).toMatch(/queued → staged {2}\(stage\)/);
  });

  it("as JSON has all of it", async () => {
    const id = String(consumed[1]?.inputId);
    const { values } = await directory.json(["inputs", "show", "order-1", id]);
    expect(values).toMatchObject([
      {
        inputId: id,
        completion: { type: "completed", result: "second" },
        receipt: { inputIds: [id] },
      },
    ]);
  });
});

describe("a beginning of an id", () => {
  it("that one id has stands for it", async () => {
    const run = await directory.json(["sessions", "show", "wa"]);
    expect(run.values).toMatchObject([{ id: "waits" }]);
    const id = String(consumed[1]?.inputId);
    // Ids made within a few milliseconds share their first digits; these differ after them.
    const input = await directory.json(["inputs", "show", "order-1", id.slice(0, -4)]);
    expect(input.values).toMatchObject([{ inputId: id }]);
  });

  it("that several ids have is refused, and they are named", async () => {
    const run = await directory.run(["sessions", "show", "order"]);
    expect(run).toMatchObject({ code: exitCodes.usage, stdout: "" });
    expect(run.stderr).toMatch(
      /^holdfast: The session id is not valid: value is the beginning of order-1, order-2, orders, expected the beginning of one\.\n$/,
    );
    const input = await directory.run(["inputs", "show", "order-1", "0"]);
    expect(input.code).toBe(exitCodes.usage);
  });

  it("that is a whole id stands for that one", async () => {
    await directory.run(["session", "order-11"], "");
    const run = await directory.json(["sessions", "show", "order-1"]);
    expect(run.values).toMatchObject([{ id: "order-1" }]);
  });

  it("that no id has is not found", async () => {
    for (const args of [
      ["sessions", "show", "nobody"],
      ["inputs", "list", "nobody"],
      ["inputs", "show", "waits", "nobody"],
    ]) {
      const run = await directory.run(args);
      expect(run).toMatchObject({ code: exitCodes.notFound, stdout: "" });
      expect(run.stderr).toMatch(
        /^holdfast: No (session|input) "nobody" exists in this store\..*\n$/,
      );
    }
  });

  it.each([[""], ["x".repeat(513)]])("that is no id is refused", async (id) => {
    const run = await directory.run(["sessions", "show", id]);
    expect(run).toMatchObject({ code: exitCodes.usage, stdout: "" });
  });
});

describe("looking", () => {
  it("changes no record", async () => {
    const before = await recordsOf(directory);
    const id = String(consumed[0]?.inputId);
    for (const args of [
      ["sessions", "list"],
      ["sessions", "show", "waits"],
      ["inputs", "list", "waits"],
      ["inputs", "show", "order-1", id],
      ["store", "verify"],
    ]) {
      expect((await directory.run(args)).code).toBe(exitCodes.ok);
    }
    expect(await recordsOf(directory)).toBe(before);
  });

  it.each([
    [["sessions", "list"]],
    [["sessions", "show", "s"]],
    [["inputs", "list", "s"]],
    [["inputs", "show", "s", "i"]],
    [["store", "verify"]],
  ])("makes no store where there is none: %s", async (args) => {
    const empty = new Directory();
    const run = await empty.run(args);
    expect(run).toMatchObject({ code: exitCodes.notFound, stdout: "" });
    expect(run.stderr).toMatch(/^holdfast: There is no store at "\.\/\.holdfast"\. .*\n$/);
    expect(readdirSync(empty.path)).toEqual([]);
    empty.remove();
  });
});

/** All records with their revisions, but that of the store itself, which counts openings. */
async function recordsOf({ path }: Directory): Promise<string> {
  const store = await levelStore(`${path}/.holdfast`, { create: false });
  const hash = createHash("sha256");
  let after: readonly string[] | undefined;
  do {
    const page = await store.list({ prefix: [], limit: 256, after });
    for (const record of page.records)
      if (record.key[0] !== "store") hash.update(JSON.stringify(record));
    after = page.next;
  } while (after !== undefined);
  await store.close();
  return hash.digest("hex");
}

describe("a store that another process holds", () => {
  it("is not touched, and the process is named", async () => {
    const held = new Directory();
    const program = shell("read turn; echo x > began; while [ ! -e go ]; do sleep 0.02; done");
    const holder = held.start(["session", "s", "--exec", ...program]);
    holder.stdin.end("a\n");
    await held.said("began");
    for (const args of [
      ["sessions", "list"],
      ["session", "s"],
      ["store", "verify"],
    ]) {
      const run = await held.run(args);
      expect(run).toMatchObject({ code: exitCodes.locked, stdout: "" });
      expect(run.stderr).toContain(`is in use by process ${holder.pid}`);
      expect(run.stderr.split("\n")).toHaveLength(2);
    }
    const ended = new Promise((resolve) => holder.on("close", resolve));
    writeFileSync(held.file("go"), "");
    expect(await ended).toBe(exitCodes.ok);
    expect(await held.run(["store", "verify"])).toMatchObject({ code: exitCodes.ok });
    held.remove();
  });
});

describe("a store that is damaged", () => {
  const damages: readonly (readonly [string, (store: Directory) => void])[] = [
    ["CURRENT is gone", (store) => rmSync(store.file(".holdfast/level/CURRENT"))],
    [
      "all of LevelDB is gone",
      (store) => rmSync(store.file(".holdfast/level"), { recursive: true }),
    ],
    [
      "the identity is no JSON",
      (store) => writeFileSync(store.file(".holdfast/holdfast.json"), "x"),
    ],
    [
      "a bit of the log is flipped",
      (store) => {
        const name = readdirSync(store.file(".holdfast/level")).find((file) =>
          file.endsWith(".log"),
        );
        const path = store.file(`.holdfast/level/${name}`);
        const bytes = readFileSync(path);
        bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 4;
        writeFileSync(path, bytes);
      },
    ],
  ];

  it.each(damages)("is refused in one line, and left as it is: %s", async (_, damage) => {
    const store = new Directory();
    await store.run(["session", "s", "--exec", ...echo], "one\ntwo\nthree\n");
    damage(store);
    const before = filesOf(store);
    for (const args of [
      ["sessions", "list"],
      ["session", "s"],
    ]) {
      const run = await store.run(args);
      expect(run).toMatchObject({ code: exitCodes.corruption, stdout: "" });
      expect(run.stderr).toMatch(/^holdfast: .*\n$/);
    }
    const verified = await store.json(["store", "verify"]);
    expect(verified.code).toBe(exitCodes.corruption);
    expect(verified.values.at(-1)).toMatchObject({ type: "verified", findings: 1 });
    expect(verified.values[0]).toMatchObject({ type: "finding", invariant: "files" });
    expect(filesOf(store)).toEqual(before);
    store.remove();
  });

  it("in one session shows the others, and says which is damaged", async () => {
    const store = new Directory();
    for (const id of ["a", "b", "c"]) await store.run(["session", id], "x\n");
    const level = await levelStore(store.file(".holdfast"));
    const transaction = await level.begin();
    transaction.put(["session", "b"], { snapshot: "none" });
    await transaction.commit();
    await level.close();
    const list = await store.json(["sessions", "list"]);
    expect(list.code).toBe(exitCodes.corruption);
    expect(list.values).toMatchObject([
      { id: "a", state: "idle" },
      { id: "b", damaged: true },
      { id: "c", state: "idle" },
    ]);
    expect(list.stderr).toMatch(/^holdfast: Record session\/b: .*\n$/);
    const verified = await store.run(["store", "verify"]);
    expect(verified.code).toBe(exitCodes.corruption);
    expect(verified.stdout).toMatch(/^I3 {5}session\/b {2}/m);
    expect(verified.stderr).toMatch(/^holdfast: \d+ findings?\. .*\n$/);
    store.remove();
  });
});

/** Names and contents of the files of a store. */
function filesOf(store: Directory): readonly string[] {
  return readdirSync(store.file(".holdfast"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const bytes = readFileSync(`${entry.parentPath}/${entry.name}`);
      return `${entry.name} ${createHash("sha256").update(bytes).digest("hex")}`;
    })
    .toSorted();
}
