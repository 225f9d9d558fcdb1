/**
 * One run of a program: its input on stdin, its output within bounds, its end in every way in which
 * a program can end. When the run is over, so is everything that the program started.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { ExecutorError, show } from "../../errors.js";
import { hasProcessGroups, ProcessGroup } from "./process-group.js";

export interface ProgramRequest {
  /** The program and its arguments. No shell reads them. */
  readonly command: readonly [string, ...string[]];
  readonly cwd?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly input: string;
  readonly timeoutMs: number;
  readonly outputBytesMax: number;
  readonly killAfterMs: number;
  readonly signal: AbortSignal;
}

/** What is kept of stderr: its end. */
const STDERR_TAIL_BYTES = 4_096;
/** A descendant may hold the pipes of a program that has exited; they are read for this long. */
const PIPE_GRACE_MS = 200;
const STDERR_LINE_MAX = 200;

/**
 * Runs a program to its end and gives what it wrote to stdout.
 * @throws ExecutorError it could not be started, failed, took too long, wrote too much, or was stopped
 */
export async function runProgram(request: ProgramRequest): Promise<Buffer> {
  if (request.signal.aborted) throw stopped(request);
  const child = await start(request);
  const group = ProcessGroup.of(child);
  const stderr = new Tail(STDERR_TAIL_BYTES);
  child.stderr.on("data", (chunk: Buffer) => stderr.add(chunk));
  const output = new Output(child, request.outputBytesMax);
  const watch = watchFaults(request);
  try {
    // A program need not read what it is told: a closed pipe is no fault.
    child.stdin.end(request.input);
    await Promise.race([hasEnded(child), output.overflow, watch.fault]);
    // What is left after a program's own end goes without changing the outcome.
    await group?.end(request.killAfterMs);
  } catch (error) {
    child.stdout.destroy();
    await group?.end(request.killAfterMs);
    throw error instanceof ExecutorError
      ? new ExecutorError(error.reason, detailsOf(child, stderr), error.cause)
      : error;
  } finally {
    watch.end();
    for (const stream of child.stdio) stream?.destroy();
  }
  requireSuccess(request, child, stderr);
  return output.bytes();
}

async function start(request: ProgramRequest): Promise<ChildProcessWithoutNullStreams> {
  const { command, cwd, env } = request;
  const [program, ...args] = command;
  try {
    const child = spawn(program, args, {
      cwd,
      env,
      stdio: "pipe",
      detached: hasProcessGroups,
      windowsHide: true,
    });
    await once(child, "spawn");
    // Errors from here on are those of signals and pipes; how the program ends says all that counts.
    for (const source of [child, ...child.stdio]) source?.on("error", () => {});
    return child;
  } catch (error) {
    throw notStarted(program, cwd, error);
  }
}

/** Resolves when the program has exited and its output has been read. */
function hasEnded(child: ChildProcessWithoutNullStreams): Promise<void> {
  return new Promise((resolve) => {
    child.on("exit", () => {
      const grace = setTimeout(resolve, PIPE_GRACE_MS);
      child.on("close", () => {
        clearTimeout(grace);
        resolve();
      });
    });
  });
}

/** Faults that come from outside the program: its time is over, or nobody wants it any more. */
function watchFaults(request: ProgramRequest) {
  const { timeoutMs, signal } = request;
  let end = () => {};
  const fault = new Promise<never>((_, reject) => {
    const timer = setTimeout(
      () => reject(new ExecutorError(`${nameOf(request)} did not end within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const stop = () => reject(stopped(request));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    };
  });
  return { fault, end: () => end() };
}

/** What a program writes, up to a bound; nothing is kept once it has been passed. */
class Output {
  /** Rejects when the program writes more than it may. */
  readonly overflow: Promise<never>;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(child: ChildProcessWithoutNullStreams, bytesMax: number) {
    this.overflow = new Promise((_, reject) => {
      child.stdout.on("data", (chunk: Buffer) => {
        this.#size += chunk.length;
        if (this.#size <= bytesMax) {
          this.#chunks.push(chunk);
          return;
        }
        this.#chunks = [];
        child.stdout.destroy();
        reject(new ExecutorError(`its output is longer than ${bytesMax} bytes`));
      });
    });
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

/** The last bytes of a stream. */
class Tail {
  #bytes = Buffer.alloc(0);

  constructor(readonly bytesMax: number) {}

  add(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk.subarray(-this.bytesMax)]).subarray(
      -this.bytesMax,
    );
  }

  /** As text; where the cut went through a character, the rest of that character is left out. */
  text(): string {
    const start = this.#bytes.findIndex((byte) => (byte & 0xc0) !== 0x80);
    return this.#bytes.subarray(Math.max(0, start)).toString("utf8");
  }
}

function requireSuccess(
  request: ProgramRequest,
  child: ChildProcessWithoutNullStreams,
  stderr: Tail,
): void {
  const { exitCode, signalCode } = child;
  if (exitCode === 0) return;
  const how = signalCode === null ? `exited with code ${exitCode}` : `was ended by ${signalCode}`;
  throw new ExecutorError(
    `${nameOf(request)} ${how}${lastWords(stderr.text())}`,
    detailsOf(child, stderr),
  );
}

/** What stderr says went wrong: its last line that names an error, else its last line. */
function lastWords(text: string): string {
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  const said = lines.filter((line) => line !== "" && !line.startsWith("Node.js v"));
  const line = said.findLast((line) => /^[\w.]*(Error|Exception)\b/.test(line)) ?? said.at(-1);
  if (line === undefined) return "";
  return `: ${show(line.slice(0, STDERR_LINE_MAX).toWellFormed())}`;
}

function detailsOf(child: ChildProcessWithoutNullStreams, stderr: Tail): ExecutorError["details"] {
  return { exitCode: child.exitCode, signal: child.signalCode, stderr: stderr.text() };
}

function stopped(request: ProgramRequest): ExecutorError {
  return new ExecutorError(`${nameOf(request)} was stopped together with its turn`);
}

function notStarted(program: string, cwd: string | undefined, cause: unknown): ExecutorError {
  const code = (cause as NodeJS.ErrnoException).code ?? "unknown error";
  return new ExecutorError(whyNotStarted(program, cwd, code), {}, cause);
}

function whyNotStarted(program: string, cwd: string | undefined, code: string): string {
  const name = `program ${show(program)}`;
  if (code === "ENOENT" && cwd !== undefined && !existsSync(cwd)) {
    return `${name} was not started, its directory ${show(cwd)} does not exist (ENOENT)`;
  }
  if (code === "ENOENT") return `${name} was not found (ENOENT)`;
  if (code === "EACCES") return `${name} may not be executed (EACCES)`;
  return `${name} could not be started (${code})`;
}

function nameOf({ command }: ProgramRequest): string {
  return `program ${show(command[0])}`;
}
