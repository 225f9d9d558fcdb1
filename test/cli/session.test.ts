/** `holdfast session`: lines in, completions out, and the second run that has nothing to do. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exitCodes } from "../../src/cli/exit-codes.js";
import { Directory, echo, shell } from "./run-cli.js";

let directory: Directory;

beforeEach(() => {
  directory = new Directory();
});
afterEach(() => directory.remove());

describe("lines", () => {
  it("of text are prompts, and each completes in its turn", async () => {
    const run = await directory.run(["session", "s", "--exec", ...echo], "one\ntwo\r\n\n  \nthree");
    expect(run).toMatchObject({ code: exitCodes.ok, stderr: "" });
    expect(run.stdout).toMatch(
      /^completed {2}line 1 .* one\ncompleted {2}line 2 .* two\ncompleted {2}line 5 .* three\n/,
    );
    expect(run.stdout).toContain("3 accepted, 0 deduplicated, 3 completed, 0 failed, 0 resumed.");
  });

  it("of JSON are inputs of every kind", async () => {
    const lines = [
      { text: "a prompt without a kind" },
      { kind: "prompt", text: "a prompt", metadata: { n: 1 } },
      { kind: "externalEvent", eventType: "paid", payload: { n: 1 } },
      { kind: "peer", body: "hi", origin: { type: "peer", peerId: "p" } },
      { kind: "flowStep", stepId: "s", instructions: "do" },
      { kind: "continuation", reason: "go on" },
      { kind: "operation", operationId: "o", event: null },
    ];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const run = await directory.json(["session", "s", "--exec", ...echo], text);
    expect(run).toMatchObject({ code: exitCodes.ok, stderr: "" });
    const summary = run.values.at(-1);
    expect(summary).toMatchObject({ type: "summary", accepted: 7, completed: 7, failed: 0 });
  });

  it("at fault are reported by their number, and the rest goes on", async () => {
    const bytes = Buffer.concat([
      Buffer.from(
        'good\n{"text":\n{"text":1}\n{"text":"x","idempotencykey":"k"}\n{"kind":"odd"}\n',
      ),
      Buffer.from([0x66, 0xff, 0x0a]),
      Buffer.from(`${"x".repeat(1_048_577)}\n{"text":"a","idempotencyKey":"k"}\n`),
      Buffer.from('{"text":"b","idempotencyKey":"k"}\n{"text":"\\ud800"}\n[1]\n'),
    ]);
    const run = await directory.json(["session", "s", "--exec", ...echo], bytes);
    expect(run.code).toBe(exitCodes.someFailed);
    const rejected = run.values.filter(({ type }) => type === "rejected");
    expect(rejected.map(({ line }) => line)).toEqual([2, 3, 4, 5, 6, 7, 9, 10]);
    expect(run.values.at(-1)).toMatchObject({ accepted: 3, completed: 3, refused: 8 });
    const faults = run.stderr.split("\n").slice(0, -1);
    expect(faults.map((fault) => /^holdfast: line (\d+): /.exec(fault)?.[1])).toEqual(
      [2, 3, 4, 5, 6, 7, 9, 10].map(String),
    );
    expect(run.stderr).not.toMatch(/^\s+at /m);
    const conflict = rejected.find(({ line }) => line === 9);
    expect(conflict).toMatchObject({ code: "HOLDFAST_IDEMPOTENCY_CONFLICT" });
    const first = run.values.find(({ type, line }) => type === "accepted" && line === 8);
    expect(conflict?.existingId).toBe(first?.inputId);
  });

  it("come from a file where one is named", async () => {
    writeFileSync(directory.file("lines"), "\ufefffrom a file\n");
    const run = await directory.run(["session", "s", "--input", "lines", "--exec", ...echo]);
    expect(run).toMatchObject({ code: exitCodes.ok, stderr: "" });
    expect(run.stdout).toContain("from a file");
  });

  it("without a program are admitted only, and wait for a run with one", async () => {
    const first = await directory.json(["session", "s"], "one\ntwo\n");
    expect(first).toMatchObject({ code: exitCodes.ok });
    expect(first.values.at(-1)).toMatchObject({ accepted: 2, completed: 0 });
    const second = await directory.json(["session", "s", "--exec", ...echo], "three\n");
    expect(second.values.filter(({ type }) => type === "resumed")).toHaveLength(2);
    expect(second.values.at(-1)).toMatchObject({ accepted: 1, resumed: 2, completed: 3 });
  });
});

describe("a line that is sent again", () => {
  it("under its key is known, in the same run and in a later one", async () => {
    const lines = '{"text":"a","idempotencyKey":"k"}\n{"text":"a","idempotencyKey":"k"}\n';
    const program = shell("read turn; echo applied >> effects; echo done");
    const first = await directory.json(["session", "s", "--exec", ...program], lines);
    expect(first.values.at(-1)).toMatchObject({ accepted: 1, deduplicated: 1, completed: 1 });
    const second = await directory.run(["session", "s", "--exec", ...program], lines);
    expect(second.code).toBe(exitCodes.ok);
    expect(second.stdout).toContain("0 accepted, 2 deduplicated");
    expect(second.stdout).toContain("Nothing to do: every input was taken by an earlier run.");
    expect(directory.lines("effects")).toEqual(["applied"]);
  });

  it("without a key is a new input", async () => {
    const program = shell("read turn; echo applied >> effects; echo done");
    await directory.run(["session", "s", "--exec", ...program], "a\na\n");
    expect(directory.lines("effects")).toHaveLength(2);
  });
});

describe("the example of the documentation", () => {
  const example = (name: string) =>
    fileURLToPath(new URL(`../../docs/examples/${name}`, import.meta.url));

  it("runs, and its second run does no work", async () => {
    const program = shell(
      `IFS= read -r turn; printf '%s\\n' "$turn" >> effects; printf '%s\\n' "$turn" | "${process.execPath}" "${example("concierge.mjs")}"`,
    );
    const args = ["session", "concierge", "--input", example("inputs.jsonl"), "--exec", ...program];
    const lines = readFileSync(example("inputs.jsonl"), "utf8").trim().split("\n");
    const accepted = new Set(lines).size;
    const deduplicated = lines.length - accepted;
    expect(deduplicated).toBeGreaterThan(3);
    const first = await directory.json(args);
    expect(first).toMatchObject({ code: exitCodes.ok, stderr: "" });
    expect(first.values.at(-1)).toMatchObject({
      accepted,
      deduplicated,
      completed: accepted,
      failed: 0,
      refused: 0,
      waiting: 0,
    });
    const effects = directory.read("effects");
    const second = await directory.json(args);
    expect(second).toMatchObject({ code: exitCodes.ok, stderr: "" });
    expect(second.values.at(-1)).toMatchObject({
      accepted: 0,
      deduplicated: lines.length,
      completed: 0,
      resumed: 0,
    });
    expect(directory.read("effects")).toBe(effects);
    expect(await directory.run(["store", "verify"])).toMatchObject({ code: exitCodes.ok });
  });
});

describe("a program", () => {
  it("that exits with 1 uses up the attempts, and its input is given up", async () => {
    const program = shell("read turn; echo x >> effects; echo 'no way' >&2; exit 1");
    const run = await directory.json(["session", "s", "--exec", ...program], "a\n");
    expect(run).toMatchObject({ code: exitCodes.someFailed, stderr: "" });
    expect(run.values.map(({ type }) => type)).toEqual([
      "accepted",
      "retrying",
      "retrying",
      "failed",
      "summary",
    ]);
    expect(run.values[3]).toMatchObject({ outcome: "abandoned", line: 1 });
    expect(String(run.values[3]?.reason)).toContain("exited with code 1");
    expect(directory.lines("effects")).toHaveLength(3);
  });

  it("that fails once does its work in the next attempt", async () => {
    const program = shell("read turn; [ -e failed ] || { touch failed; exit 1; }; echo done");
    const run = await directory.json(["session", "s", "--exec", ...program], "a\n");
    expect(run.code).toBe(exitCodes.ok);
    expect(run.values.at(-1)).toMatchObject({ completed: 1, failed: 0 });
  });

  it("that hangs is ended when its time is over", async () => {
    const program = shell("read turn; exec sleep 600");
    const args = ["session", "s", "--timeout", "150", "--exec", ...program];
    const run = await directory.json(args, "a\n");
    expect(run.code).toBe(exitCodes.someFailed);
    expect(String(run.values.at(-2)?.reason)).toContain("did not end within 150 ms");
  });

  it("that prints 100 MB fails, and nothing of it is kept", async () => {
    const program = shell("read turn; yes | head -c 100000000");
    const run = await directory.json(["session", "s", "--exec", ...program], "a\n");
    expect(run.code).toBe(exitCodes.someFailed);
    expect(String(run.values.at(-2)?.reason)).toContain("longer than 1048576 bytes");
    expect(run.stdout.length).toBeLessThan(10_000);
  });

  it("that is not there is told before anything is admitted or made", async () => {
    const run = await directory.run(["session", "s", "--exec", "no-such-program"], "a\n");
    expect(run).toMatchObject({ code: exitCodes.notFound, stdout: "" });
    expect(run.stderr).toMatch(/^holdfast: There is no program "no-such-program" .*\n$/);
    expect(await directory.run(["sessions", "list"])).toMatchObject({ code: exitCodes.notFound });
  });

  it("that steers a terminal is shown as text, in either form", async () => {
    const program = shell("read turn; printf '\\033[31mred\\033[0m\\302\\233 \\342\\200\\256 x'");
    const run = await directory.run(["session", "s", "--exec", ...program], "a\n");
    expect(run.stdout).toContain("\\u001b[31mred\\u001b[0m\\u009b \\u202e x");
    const json = await directory.json(["session", "s", "--exec", ...program], "b\n");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: just those must not be there.
    expect(json.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(json.values.find(({ type }) => type === "completed")?.result).toBe(
      "\u001b[31mred\u001b[0m\u009b \u202e x",
    );
  });
});

describe("an id", () => {
  it.each([
    ["a path", "../../etc/passwd"],
    ["separators", "a:b/c\\d%2f"],
    ["an emoji", "👩‍🚀"],
    ["control characters", "\u001b[2J\u0007"],
    ["line ends", "a\nb\r\n"],
    ["512 bytes", "é".repeat(256)],
    ["a lone dot", "."],
  ])("of %s names a session like every other", async (_, id) => {
    const run = await directory.json(["session", id, "--exec", ...echo], "hello\n");
    expect(run).toMatchObject({ code: exitCodes.ok, stderr: "" });
    const list = await directory.json(["sessions", "list"]);
    expect(list.values).toMatchObject([{ id, state: "idle" }]);
    const shown = await directory.run(["sessions", "show", id]);
    expect(shown.code).toBe(exitCodes.ok);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: just those must not be there.
    expect(shown.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  });

  it.each([
    ["empty", ""],
    ["of 513 bytes", `${"é".repeat(256)}x`],
  ])("that is %s is refused, and no store is made", async (_, id) => {
    const run = await directory.run(["session", id, "--exec", ...echo], "hello\n");
    expect(run).toMatchObject({ code: exitCodes.usage, stdout: "" });
    expect(run.stderr).toMatch(/^holdfast: The session id is not valid: .*\n$/);
    expect(await directory.run(["sessions", "list"])).toMatchObject({ code: exitCodes.notFound });
  });

  it("that begins with a dash comes after two of them", async () => {
    const run = await directory.run(["session", "--", "-x"], "hello\n");
    expect(run.code).toBe(exitCodes.ok);
    expect((await directory.json(["sessions", "list"])).values).toMatchObject([{ id: "-x" }]);
  });
});
