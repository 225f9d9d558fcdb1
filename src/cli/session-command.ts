/**
 * `session`: feeds a session from lines and prints what becomes of each input. What is admitted is
 * durable before it is said; a run that was killed is continued by the next one.
 */
import { open } from "node:fs/promises";
import { addAbortSignal, type Readable } from "node:stream";
import type { InputView } from "../sessions/input.js";
import { requireId } from "../sessions/parse-input.js";
import type { Supervisor } from "../supervisor/supervisor.js";
import { MissingError, UsageError } from "./cli-errors.js";
import { storeWords } from "./existing-store.js";
import { type ExitCode, exitCodes } from "./exit-codes.js";
import { FollowedInputs } from "./followed-inputs.js";
import { readLines } from "./input-lines.js";
import type { LineDefaults } from "./line-request.js";
import type { Output } from "./output.js";
import { count, plainId, shellWord } from "./plain-text.js";
import { requireProgram } from "./program-path.js";
import { drawProgress } from "./progress.js";
import { SessionFeed } from "./session-feed.js";
import { unfinishedInputs } from "./unfinished-inputs.js";

export interface SessionCommand {
  readonly id: string;
  readonly store: string;
  /** The program and its arguments; without one, inputs are only admitted. */
  readonly exec?: readonly string[] | undefined;
  /** A file of lines; stdin where there is none. */
  readonly input?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly lines: LineDefaults;
}

/** Streams of this process, and the signal that ends the command early. */
export interface SessionStreams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** Aborted by the first signal of the operating system. */
  readonly stop: AbortSignal;
}

export async function runSession(
  command: SessionCommand,
  output: Output,
  streams: SessionStreams,
): Promise<ExitCode> {
  // Everything that can be wrong with the command line is found before a store is made.
  requireId(command.id, "session id");
  const { keyPrefix } = command.lines;
  if (keyPrefix !== undefined) requireId(keyPrefix, "option --key");
  if (command.exec !== undefined) requireProgram(command.exec[0] ?? "");
  const lines = await openLines(command, streams);
  const { Supervisor } = await import("../supervisor/supervisor.js");
  const { commandExecutor } = await import("../sessions/executors/command-executor.js");
  const { exec, timeoutMs } = command;
  const executor =
    exec === undefined
      ? undefined
      : commandExecutor(exec, timeoutMs === undefined ? {} : { timeoutMs });
  const supervisor = await Supervisor.open({ store: command.store });
  // The timers of the library keep no process alive; a pause before a retry must not end this one.
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    const left = await unfinishedInputs(supervisor.store, command.id);
    const session = await supervisor.sessions.open(
      command.id,
      executor === undefined ? {} : { executor },
    );
    const inputs = new FollowedInputs(session, output, { isWorking: executor !== undefined });
    const feed = new SessionFeed({ session, inputs, output, defaults: command.lines });
    announce(command, left.length, output, streams);
    return await new SessionRun({ command, supervisor, inputs, feed, lines, output }).run(
      left,
      streams,
    );
  } finally {
    clearInterval(alive);
    lines.destroy();
    await supervisor.close({ mode: "cancel-and-drain" });
  }
}

/** From the first line to the summary. */
class SessionRun {
  constructor(
    readonly parts: {
      readonly command: SessionCommand;
      readonly supervisor: Supervisor;
      readonly inputs: FollowedInputs;
      readonly feed: SessionFeed;
      readonly lines: Readable;
      readonly output: Output;
    },
  ) {}

  async run(left: readonly InputView[], streams: SessionStreams): Promise<ExitCode> {
    const { supervisor, inputs, feed, lines, output } = this.parts;
    const stop = AbortSignal.any([streams.stop, output.closed]);
    stop.addEventListener("abort", () => inputs.stop(), { once: true });
    if (stop.aborted) inputs.stop();
    const endProgress = drawProgress(streams.stderr, output, () => ({
      accepted: feed.accepted,
      deduplicated: feed.deduplicated,
      completed: inputs.counts.completed + inputs.counts.failed,
      waiting: inputs.waiting,
    }));
    const over = AbortSignal.any([stop, inputs.failed]);
    addAbortSignal(over, lines);
    try {
      for (const row of left) await inputs.resume(row);
      await feed.take(readLines(lines), over);
      if (inputs.isWorking) await inputs.settled();
    } finally {
      endProgress();
      // A signal cuts turns off and loses nothing: their inputs wait for the next run.
      inputs.stop();
      await supervisor.close({ mode: "cancel-and-drain" });
      await this.#summarize();
    }
    if (inputs.failed.aborted) throw inputs.failed.reason;
    if (output.closed.aborted) return exitCodes.outputClosed;
    return inputs.counts.failed + feed.refused > 0 ? exitCodes.someFailed : exitCodes.ok;
  }

  async #summarize(): Promise<void> {
    const { command, inputs, feed, output } = this.parts;
    const { accepted, deduplicated, refused } = feed;
    const { completed, failed, resumed } = inputs.counts;
    const { waiting } = inputs;
    const counts = { accepted, deduplicated, refused, completed, failed, resumed, waiting };
    const isAllKnown = deduplicated > 0 && accepted + resumed + refused === 0;
    const store = storeWords(command.store);
    const id = shellWord(command.id);
    const text = [
      `${accepted} accepted, ${deduplicated} deduplicated, ${completed} completed, ${failed} failed, ${resumed} resumed${refused === 0 ? "" : `, ${refused} refused`}${waiting === 0 ? "" : `, ${waiting} waiting`}.`,
      ...(isAllKnown ? ["Nothing to do: every input was taken by an earlier run."] : []),
      `More: holdfast sessions show ${id}${store}; holdfast inputs list ${id}${store}; holdfast store verify${store}`,
    ].join("\n");
    await output.print({ type: "summary", ...counts }, text);
  }
}

/** Opens what is to be read before a store is made for it. */
async function openLines({ input }: SessionCommand, { stdin }: SessionStreams): Promise<Readable> {
  if (input === undefined) return stdin;
  try {
    const file = await open(input);
    if ((await file.stat()).isDirectory()) {
      await file.close();
      throw new UsageError("--input names a directory.");
    }
    return file.createReadStream();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new MissingError("file", input, error);
    throw new UsageError(`The file of --input cannot be read (${code}).`, error);
  }
}

function announce(
  { id, exec, input }: SessionCommand,
  left: number,
  output: Output,
  { stdin }: SessionStreams,
): void {
  const work = count(left, "unfinished input");
  if (exec === undefined) {
    output.remark(
      `No --exec: inputs of session ${plainId(id)} are admitted only, and wait for a run with one.${left === 0 ? "" : ` It holds ${work}.`}`,
    );
  } else if (left > 0) {
    output.remark(`Session ${plainId(id)} goes on with ${work} of an earlier run.`);
  }
  if (input === undefined && stdin.isTTY === true) {
    output.remark("Reads one input a line; Ctrl-D ends, Ctrl-C stops.");
  }
}
