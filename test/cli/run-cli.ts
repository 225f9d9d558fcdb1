/** The built command line as a real process, in a directory of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const main = fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url));

export interface Run {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Directory {
  readonly path = mkdtempSync(join(tmpdir(), "holdfast-cli-"));

  file(name: string): string {
    return join(this.path, name);
  }

  /** What a program of the test wrote there; nothing where it did not. */
  read(name: string): string {
    return existsSync(this.file(name)) ? readFileSync(this.file(name), "utf8") : "";
  }

  lines(name: string): readonly string[] {
    return this.read(name).split("\n").slice(0, -1);
  }

  /** Waits until a program has written a line. */
  async said(name: string): Promise<string> {
    while (this.lines(name).length === 0) await sleep(5);
    return this.read(name);
  }

  start(args: readonly string[]): ChildProcessWithoutNullStreams {
    return spawn(process.execPath, [main, ...args], { cwd: this.path, stdio: "pipe" });
  }

  /** Runs the command line to its end, with `input` as all of its stdin. */
  async run(args: readonly string[], input: string | Uint8Array = ""): Promise<Run> {
    const child = this.start(args);
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    return endOf(child);
  }

  /** Runs it with `--json`, and gives the values of its lines. */
  async json(args: readonly string[], input: string | Uint8Array = ""): Promise<JsonRun> {
    const run = await this.run([...withJson(args)], input);
    return { ...run, values: valuesOf(run.stdout) };
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export interface JsonRun extends Run {
  readonly values: readonly JsonLine[];
}

/** A line of `--json`. */
export interface JsonLine {
  readonly [name: string]: unknown;
}

export function valuesOf(stdout: string): readonly JsonLine[] {
  return stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as JsonLine);
}

/** All words after `--exec` are the program's, so the option goes before them. */
function withJson(args: readonly string[]): readonly string[] {
  return ["--json", ...args];
}

/** Gathers what a process says until it ends. */
export async function endOf(child: ChildProcessWithoutNullStreams): Promise<Run> {
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout, stderr };
}

/** A program for `--exec` that answers with the texts of its inputs. */
export const echo = [
  process.execPath,
  "-e",
  `let turn = "";
  process.stdin.on("data", (part) => (turn += part)).on("end", () => {
    const texts = JSON.parse(turn).inputs.map(({ payload }) => payload.text ?? payload.eventType);
    console.log(JSON.stringify({ result: texts.join("+") }));
  });`,
];

/** A program for `--exec` from a line of shell. */
export const shell = (script: string): readonly string[] => ["sh", "-c", script];
