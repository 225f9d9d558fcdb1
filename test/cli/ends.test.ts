/** How the command line ends when its surroundings do: signals, readers that go, streams that close. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exitCodes } from "../../src/cli/exit-codes.js";
import { hasGone, isRunning } from "../sessions/executors/turn-request.js";
import { Directory, echo, endOf, main, shell, valuesOf } from "./run-cli.js";

let directory: Directory;

beforeEach(() => {
  directory = new Directory();
});
afterEach(() => directory.remove());

/** A program that notes that it began, with its process id, and then takes its time. */
const slow = shell("read turn; echo $$ > began; exec sleep 600");
const quick = shell("read turn; echo done");

describe("a signal during a turn", () => {
  it.each([
    ["SIGINT", exitCodes.interrupted],
    ["SIGTERM", exitCodes.terminated],
    ["SIGHUP", exitCodes.hungUp],
  ] as const)("%s ends the run with its code, and the next one goes on", async (signal, code) => {
    const child = directory.start(["--json", "session", "s", "--exec", ...slow]);
    child.stdin.end('{"text":"a","idempotencyKey":"k"}\nb\n');
    const pid = Number(await directory.said("began"));
    const end = endOf(child);
    child.kill(signal);
    const run = await end;
    expect(run).toMatchObject({ code, signal: null, stderr: "" });
    expect(valuesOf(run.stdout).at(-1)).toMatchObject({ type: "summary", failed: 0, waiting: 2 });
    expect(await hasGone(pid)).toBe(true);

    const next = await directory.json(["session", "s", "--exec", ...quick]);
    expect(next.code).toBe(exitCodes.ok);
    expect(next.values.at(-1)).toMatchObject({ accepted: 0, resumed: 2, completed: 2, waiting: 0 });
    // The turn that was cut off counts as no failure.
    const inputs = await directory.json(["inputs", "list", "s"]);
    expect(inputs.values).toMatchObject([
      { phase: "consumed", attempts: 2, recoveries: 1 },
      { phase: "consumed", attempts: 1, recoveries: 0 },
    ]);
    expect(await directory.run(["store", "verify"])).toMatchObject({ code: exitCodes.ok });
  });

  it("while lines are still awaited ends the run as well", async () => {
    const child = directory.start(["--json", "session", "s", "--exec", ...quick]);
    child.stdin.write("a\n");
    const end = endOf(child);
    child.stdout.on("data", (text: string) => {
      if (text.includes('"completed"')) child.kill("SIGINT");
    });
    expect(await end).toMatchObject({ code: exitCodes.interrupted, stderr: "" });
    child.stdin.destroy();
  });

  it("given twice does not wait for a program that will not end", async () => {
    const stubborn = shell(
      "trap '' TERM; read turn; echo $$ > began; while :; do sleep 0.05; done",
    );
    const child = directory.start(["session", "s", "--exec", ...stubborn]);
    child.stdin.end("a\n");
    const pid = Number(await directory.said("began"));
    const end = endOf(child);
    child.kill("SIGINT");
    child.kill("SIGINT");
    expect(await end).toMatchObject({ code: exitCodes.interrupted });
    expect(await hasGone(pid)).toBe(true);
    expect(isRunning(pid)).toBe(false);
    const next = await directory.json(["session", "s", "--exec", ...quick]);
    expect(next.values.at(-1)).toMatchObject({ resumed: 1, completed: 1 });
  });
});

describe("a reader that goes", () => {
  it("ends a listing quietly, as in a pipe to head", async () => {
    const lines = Array.from({ length: 3_000 }, (_, n) => `input ${n} ${"x".repeat(200)}\n`).join(
      "",
    );
    await directory.run(["session", "s"], lines);
    const child = directory.start(["inputs", "list", "s"]);
    let stderr = "";
    child.stderr.on("data", (text) => {
      stderr += text;
    });
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.stdout.once("data", () => child.stdout.destroy());
    expect(await ended).toBe(exitCodes.outputClosed);
    expect(stderr).toBe("");
  });

  it("ends a session, whose inputs wait for the next run", async () => {
    const child = directory.start(["session", "s", "--exec", ...quick]);
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.stdin.on("error", () => {});
    child.stdin.write("first\n");
    child.stdout.once("data", () => {
      child.stdout.destroy();
      child.stdin.write("second\nthird\n");
    });
    expect(await ended).toBe(exitCodes.outputClosed);
    const next = await directory.json(["session", "s", "--exec", ...quick]);
    expect(next.code).toBe(exitCodes.ok);
    const inputs = await directory.json(["inputs", "list", "s"]);
    expect(inputs.values.every(({ phase }) => phase === "consumed")).toBe(true);
    expect(await directory.run(["store", "verify"])).toMatchObject({ code: exitCodes.ok });
  });

  it("of faults alone is no reason to end", async () => {
    const child = directory.start(["--json", "session", "s", "--exec", ...echo]);
    child.stderr.destroy();
    child.stdin.end("{\n{\n{\nlast\n");
    let stdout = "";
    child.stdout.on("data", (text) => {
      stdout += text;
    });
    const code = await new Promise((resolve) => child.on("close", resolve));
    expect(code).toBe(exitCodes.someFailed);
    expect(valuesOf(stdout).at(-1)).toMatchObject({ refused: 3, completed: 1 });
  });
});

describe("a stdin", () => {
  it("that ends at once is a run without lines", async () => {
    const run = await directory.json(["session", "s", "--exec", ...quick], "");
    expect(run).toMatchObject({ code: exitCodes.ok, stderr: "" });
    expect(run.values).toMatchObject([{ type: "summary", accepted: 0, completed: 0 }]);
  });

  it.each([
    ["is closed", "<&-"],
    ["is a directory", "</"],
  ])("that %s says so or has no lines", async (_, redirection) => {
    const { spawnSync } = await import("node:child_process");
    const script = `exec "$0" "$1" session s ${redirection}`;
    const run = spawnSync("sh", ["-c", script, process.execPath, main], {
      cwd: directory.path,
      encoding: "utf8",
    });
    expect([exitCodes.ok, exitCodes.usage]).toContain(run.status);
    expect(run.stderr).not.toMatch(/^\s+at /m);
  });

  it("that closes in the middle of a line gives what was there", async () => {
    const run = await directory.json(["session", "s", "--exec", ...echo], "whole\nhal");
    expect(
      run.values.filter(({ type }) => type === "completed").map(({ result }) => result),
    ).toEqual(["whole", "hal"]);
  });
});
