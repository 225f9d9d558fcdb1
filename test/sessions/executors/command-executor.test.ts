import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type CommandOptions,
  commandExecutor,
} from "../../../src/sessions/executors/command-executor.js";
import type { TranscriptEntry } from "../../../src/sessions/records.js";
import { contentOf, hasGone, isRunning, turnRequest } from "./turn-request.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-command-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const shell = (script: string, options?: CommandOptions) =>
  commandExecutor(["sh", "-c", script], options);
const node = (script: string, options?: CommandOptions) =>
  commandExecutor([process.execPath, "-e", script], options);

async function faultOf(work: Promise<unknown>) {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe("what a program reads", () => {
  it("gets the turn as one line of JSON", async () => {
    const { result } = await commandExecutor(["cat"]).apply(turnRequest({ texts: ["a\nb"] }));
    const line = String(result);
    expect(line).not.toContain("\n");
    expect(JSON.parse(line)).toEqual({
      turnId: "turn-1",
      sessionId: "session-1",
      attempt: 1,
      inputs: [
        {
          inputId: "input-0",
          sequence: 0,
          attempt: 1,
          kind: "prompt",
          payload: { text: "a\nb" },
          header: {
            id: "input-0",
            timestamp: "1970-01-01T00:00:00.000Z",
            origin: { type: "operator" },
            durability: "durable",
            visibility: { transcript: true, operator: true },
          },
        },
      ],
      context: { tenant: "t1" },
      transcript: { messages: 0 },
    });
  });

  it("gets the last entries of the transcript where it wants them", async () => {
    const transcript: TranscriptEntry[] = [0, 1, 2, 3, 4].map((n) => ({
      turnId: `turn-${n}`,
      receipt: 0,
      messages: [{ role: "user", content: `m${n}` }],
    }));
    const read = async (transcriptEntries: number) => {
      const executor = commandExecutor(["cat"], { transcriptEntries });
      const { result } = await executor.apply(turnRequest({ transcript }));
      return JSON.parse(String(result)).transcript;
    };
    expect(await read(2)).toEqual({ messages: 5, entries: transcript.slice(3) });
    expect(await read(256)).toEqual({ messages: 5, entries: transcript });
  });

  it("gets 8 MB without a stop", async () => {
    const text = "x".repeat(8_000_000);
    const { result } = await shell("wc -c").apply(turnRequest({ texts: [text] }));
    expect(Number(result)).toBeGreaterThan(8_000_000);
  });

  it("need not read any of it", async () => {
    const text = "x".repeat(8_000_000);
    const answer = await shell("exec <&-; echo done").apply(turnRequest({ texts: [text] }));
    expect(answer.result).toBe("done");
  });

  it("runs in its directory, with its variables, and without those that were taken away", async () => {
    const executor = shell('echo "$PWD $GIVEN $TAKEN"', {
      cwd: directory,
      env: { GIVEN: "yes", TAKEN: undefined },
    });
    process.env.TAKEN = "here";
    const { result } = await executor.apply(turnRequest());
    process.env.TAKEN = undefined;
    expect(result).toBe(`${directory} yes`.concat(" "));
  });

  it("gets its arguments as they are, without a shell", async () => {
    const words = ["$(id)", "a b", "*", "'", ";", "--flag"];
    const script = "console.log(JSON.stringify(process.argv.slice(1)))";
    const executor = commandExecutor([process.execPath, "-e", script, "--", ...words]);
    const { result } = await executor.apply(turnRequest());
    expect(JSON.parse(String(result))).toEqual(words);
  });
});

describe("what a program answers", () => {
  it.each([
    ["an object with messages and result", '{"messages":[{"role":"x"}],"result":{"n":1}}'],
    ["an object with a callback", '{"callback":{"tool":"ask","args":null}}'],
    ["an empty object", "{}"],
  ])("%s is taken as it stands", async (_, text) => {
    const answer = await shell(`printf '%s' '${text}'`).apply(turnRequest());
    expect(answer).toEqual(JSON.parse(text));
  });

  it.each([
    ["text", "hello there"],
    ["text without a line end", "no newline"],
    ["a JSON string", '"quoted"'],
    ["a JSON object with another name", '{"result":1,"other":2}'],
    ["a brace that is no JSON", "{ oh"],
    ["an array", "[1]"],
  ])("%s becomes the result and a message", async (_, text) => {
    const answer = await shell(`printf '%s\\n' '${text}'`).apply(turnRequest());
    expect(answer).toEqual({ messages: [{ role: "assistant", content: text }], result: text });
  });

  it("text without a line end is whole", async () => {
    expect((await shell("printf abc").apply(turnRequest())).result).toBe("abc");
  });

  it("nothing is an answer without a result", async () => {
    expect(await shell(":").apply(turnRequest())).toEqual({});
    expect(await shell("echo").apply(turnRequest())).toEqual({});
  });

  it.each([
    ["messages that are no list", '{"messages":"hi"}', "/messages"],
    ["a message that is no object", '{"messages":["hi"]}', "/messages"],
    ["a callback without a tool", '{"callback":{"args":1}}', "/callback"],
    ["a number beyond all numbers", '{"result":1e999}', "/result"],
    ["a lone surrogate", '{"result":"\\ud800"}', "/result"],
  ])("%s fails the turn", async (_, text, path) => {
    writeFileSync(join(directory, "answer"), text);
    const fault = await faultOf(shell("cat answer", { cwd: directory }).apply(turnRequest()));
    expect(fault).toMatchObject({ code: "HOLDFAST_EXECUTOR", cause: { issues: [{ path }] } });
  });

  it("output that is not UTF-8 fails the turn", async () => {
    const fault = await faultOf(shell("printf 'a\\377b'").apply(turnRequest()));
    expect(fault).toMatchObject({
      code: "HOLDFAST_EXECUTOR",
      reason: 'program "sh": its output is not valid UTF-8',
    });
  });
});

describe("how a program fails", () => {
  it("an exit code comes with the end of stderr", async () => {
    const script = "echo first >&2; echo 'it broke' >&2; exit 3";
    expect(await faultOf(shell(script).apply(turnRequest()))).toMatchObject({
      code: "HOLDFAST_EXECUTOR",
      reason: 'program "sh" exited with code 3: "it broke"',
      details: { exitCode: 3, signal: null, stderr: "first\nit broke\n" },
    });
  });

  it("of a stack trace the reason carries the error", async () => {
    const executor = node("throw new TypeError('no such thing')");
    expect(await faultOf(executor.apply(turnRequest()))).toMatchObject({
      reason: `program ${JSON.stringify(process.execPath)} exited with code 1: "TypeError: no such thing"`,
    });
  });

  it("keeps the last 4 KiB of stderr, whole characters only", async () => {
    const script = "process.stderr.write('é'.repeat(100_000) + 'end', () => process.exit(1))";
    const fault = (await faultOf(node(script).apply(turnRequest()))) as {
      details: { stderr: string };
    };
    expect(fault.details.stderr).toMatch(/^é+end$/);
    expect(Buffer.byteLength(fault.details.stderr)).toBeLessThanOrEqual(4_096);
    expect(Buffer.byteLength(fault.details.stderr)).toBeGreaterThan(4_090);
  });

  it("an end by a signal names the signal", async () => {
    expect(await faultOf(shell("kill -SEGV $$").apply(turnRequest()))).toMatchObject({
      reason: 'program "sh" was ended by SIGSEGV',
      details: { exitCode: null, signal: "SIGSEGV" },
    });
  });

  it("a missing program is named", async () => {
    const executor = commandExecutor(["no-such-program-here"]);
    expect(await faultOf(executor.apply(turnRequest()))).toMatchObject({
      code: "HOLDFAST_EXECUTOR",
      reason: 'program "no-such-program-here" was not found (ENOENT)',
    });
  });

  it("a program that may not be executed is named", async () => {
    const path = join(directory, "plain");
    writeFileSync(path, "#!/bin/sh\n");
    chmodSync(path, 0o644);
    expect(await faultOf(commandExecutor([path]).apply(turnRequest()))).toMatchObject({
      reason: `program ${JSON.stringify(path)} may not be executed (EACCES)`,
    });
  });

  it("a missing directory is not taken for a missing program", async () => {
    const executor = commandExecutor(["cat"], { cwd: join(directory, "gone") });
    expect(await faultOf(executor.apply(turnRequest()))).toMatchObject({
      reason: expect.stringContaining("does not exist"),
    });
  });

  it("a command line that is too long is a fault of the turn", async () => {
    const executor = commandExecutor(["echo", "x".repeat(4_000_000)]);
    expect(await faultOf(executor.apply(turnRequest()))).toMatchObject({
      reason: 'program "echo" could not be started (E2BIG)',
    });
  });
});

describe("bounds", () => {
  it("a program that hangs is stopped when its time is over", async () => {
    const executor = shell("echo $$ > pid; sleep 60", { timeoutMs: 300, cwd: directory });
    const fault = await faultOf(executor.apply(turnRequest()));
    expect(fault).toMatchObject({
      reason: 'program "sh" did not end within 300 ms',
      details: { signal: "SIGTERM" },
    });
    expect(isRunning(Number(await contentOf(join(directory, "pid"))))).toBe(false);
  });

  it("a program that ignores SIGTERM is killed", async () => {
    const executor = shell("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done", {
      timeoutMs: 300,
      killAfterMs: 100,
      cwd: directory,
    });
    const fault = await faultOf(executor.apply(turnRequest()));
    expect(fault).toMatchObject({ details: { signal: "SIGKILL" } });
    expect(isRunning(Number(await contentOf(join(directory, "pid"))))).toBe(false);
  });

  it("100 MB of output end in an error, with the memory flat", async () => {
    const before = process.memoryUsage().rss;
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 5);
    const executor = shell("echo $$ > pid; yes | head -c 100000000; sleep 60", { cwd: directory });
    const fault = await faultOf(executor.apply(turnRequest()));
    clearInterval(watch);
    expect(fault).toMatchObject({
      code: "HOLDFAST_EXECUTOR",
      reason: 'program "sh": its output is longer than 1048576 bytes',
    });
    expect(isRunning(Number(await contentOf(join(directory, "pid"))))).toBe(false);
    expect(most - before).toBeLessThan(40_000_000);
  });

  it("output of exactly the bound is taken, one byte more is not", async () => {
    const exact = shell("head -c 1000 /dev/zero | tr '\\0' x", { outputBytesMax: 1_000 });
    expect(String((await exact.apply(turnRequest())).result)).toHaveLength(1_000);
    const more = shell("head -c 1001 /dev/zero | tr '\\0' x", { outputBytesMax: 1_000 });
    expect(await faultOf(more.apply(turnRequest()))).toMatchObject({ code: "HOLDFAST_EXECUTOR" });
  });

  it("100 MB on stderr cost no more than its tail", async () => {
    const executor = shell("yes | head -c 100000000 >&2; exit 1");
    const fault = (await faultOf(executor.apply(turnRequest()))) as {
      details: { stderr: string };
    };
    expect(fault.details.stderr).toHaveLength(4_096);
  });
});

describe("what a program leaves behind", () => {
  it("a descendant that holds stdout does not hold up the turn, and is ended", async () => {
    const executor = shell("sleep 60 & echo $! > pid; echo answered", { cwd: directory });
    const answer = await executor.apply(turnRequest());
    expect(answer.result).toBe("answered");
    expect(await hasGone(Number(await contentOf(join(directory, "pid"))))).toBe(true);
  });

  it("an abort ends the whole group", async () => {
    const controller = new AbortController();
    const executor = shell("sh -c 'echo $$ > grandchild; sleep 60' & echo $$ > pid; wait", {
      cwd: directory,
    });
    const work = faultOf(executor.apply(turnRequest({ signal: controller.signal })));
    const pids = [
      Number(await contentOf(join(directory, "pid"))),
      Number(await contentOf(join(directory, "grandchild"))),
    ];
    controller.abort();
    expect(await work).toMatchObject({
      code: "HOLDFAST_EXECUTOR",
      reason: 'program "sh" was stopped together with its turn',
    });
    for (const pid of pids) expect(await hasGone(pid)).toBe(true);
  });

  it("an abort kills what ignores SIGTERM, descendants of a program that has ended too", async () => {
    const controller = new AbortController();
    const stubborn = 'trap "" TERM; echo $$ > stubborn; while :; do sleep 0.05; done';
    const executor = shell(`sh -c '${stubborn}' & wait`, { cwd: directory, killAfterMs: 100 });
    const work = faultOf(executor.apply(turnRequest({ signal: controller.signal })));
    const pid = Number(await contentOf(join(directory, "stubborn")));
    controller.abort();
    await work;
    expect(await hasGone(pid)).toBe(true);
  });

  it("a signal that was aborted before starts nothing", async () => {
    const executor = shell("echo ran > ran", { cwd: directory });
    const fault = await faultOf(executor.apply(turnRequest({ signal: AbortSignal.abort() })));
    expect(fault).toMatchObject({ code: "HOLDFAST_EXECUTOR" });
    expect(() => chmodSync(join(directory, "ran"), 0o600)).toThrow();
  });

  it("a process that exits takes its programs with it", async () => {
    const script = `
      import { commandExecutor } from ${JSON.stringify(new URL("../../../dist/src/sessions/executors/command-executor.js", import.meta.url).href)};
      const executor = commandExecutor(["sh", "-c", "echo $$ > pid; sleep 60"]);
      executor.apply({ turnId: "t", sessionId: "s", attempt: 1, inputs: [], context: {},
        transcript: { messages: 0, entries: 0 }, signal: new AbortController().signal });
      import { existsSync } from "node:fs";
      setInterval(() => { if (existsSync("pid")) process.exit(7); }, 5);`;
    const run = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: directory,
      timeout: 20_000,
      encoding: "utf8",
    });
    expect({ status: run.status, stderr: run.stderr }).toEqual({ status: 7, stderr: "" });
    expect(await hasGone(Number(await contentOf(join(directory, "pid"))))).toBe(true);
  });
});

describe("what no executor is made of", () => {
  it.each([
    ["an empty command", [], {}],
    ["an empty name", [""], {}],
    ["an argument with a NUL", ["echo", "a\0b"], {}],
    ["a time of zero", ["cat"], { timeoutMs: 0 }],
    ["a time that no timer takes", ["cat"], { timeoutMs: 2 ** 31 }],
    ["a fraction of an entry", ["cat"], { transcriptEntries: 0.5 }],
  ])("%s", (_, command, options) => {
    expect(() => commandExecutor(command, options)).toThrowError(
      expect.objectContaining({ code: "HOLDFAST_VALIDATION" }),
    );
  });
});
