/**
 * An executor that runs a program per turn. The program gets the turn as one line of JSON on stdin
 * and answers on stdout; its exit status says whether the turn succeeded. See `docs/cli.md` for the
 * format of both.
 *
 * A program ends with its turn: when the turn is cancelled, when its time is over, when this process
 * exits. When this process is killed, the program may live on for a while. Nothing that it answers
 * then is heard, and its inputs are given to a new turn; effects that must not happen twice go by the
 * input ids, as with every executor.
 */
import { ExecutorError, show, ValidationError, type ValidationIssue } from "../../errors.js";
import { PAGE_MAX } from "../../limits.js";
import type { Executor, TurnRequest } from "./executor.js";
import { lastEntries } from "./last-entries.js";
import { optionCounts, TIMER_MAX_MS } from "./option-counts.js";
import { runProgram } from "./program.js";
import { parseAnswer } from "./program-answer.js";

export interface CommandOptions {
  /** Time for one turn, in milliseconds. Default 10 minutes. */
  readonly timeoutMs?: number;
  /** What the program may write to stdout, in bytes. Default 1 MiB. */
  readonly outputBytesMax?: number;
  /** Time between SIGTERM and SIGKILL where a program has to be stopped, in milliseconds. Default 2 s. */
  readonly killAfterMs?: number;
  /** How many of the last transcript entries the program gets, 0 to 256. Default 0. */
  readonly transcriptEntries?: number;
  /** Variables in addition to those of this process; `undefined` takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The directory to run the program in. Default the one of this process. */
  readonly cwd?: string;
}

/**
 * Makes an executor that runs `command`, the program and its arguments, without a shell. One can
 * serve any number of sessions. Every failure of a turn is an `ExecutorError` with exit code, signal
 * and the end of stderr.
 * @throws ValidationError an empty command, an argument that no program can get, an option out of range
 */
export function commandExecutor(
  command: readonly string[],
  options: CommandOptions = {},
): Executor {
  const bounds = requireOptions(options);
  const words = requireCommand(command);
  const name = `program ${show(words[0])}`;
  return {
    async apply(request) {
      const input = `${JSON.stringify(await turnOf(request, bounds.transcriptEntries))}\n`;
      const { env, cwd } = options;
      try {
        const output = await runProgram({
          command: words,
          cwd,
          env: env === undefined ? undefined : { ...process.env, ...env },
          input,
          signal: request.signal,
          ...bounds,
        });
        return parseAnswer(output);
      } catch (error) {
        if (!(error instanceof ExecutorError) || error.reason.startsWith(name)) throw error;
        throw new ExecutorError(`${name}: ${error.reason}`, error.details, error.cause);
      }
    },
  };
}

/** What a program reads. */
async function turnOf(request: TurnRequest, entries: number) {
  const { turnId, sessionId, attempt, inputs, context, transcript } = request;
  return {
    turnId,
    sessionId,
    attempt,
    inputs: inputs.map(({ inputId, sequence, attempt, header, payload: { kind, ...payload } }) => ({
      inputId,
      sequence,
      attempt,
      kind,
      payload,
      header,
    })),
    context,
    transcript: {
      messages: transcript.messages,
      ...(entries === 0 ? {} : { entries: await lastEntries(request, entries) }),
    },
  };
}

function requireCommand(command: readonly string[]): readonly [string, ...string[]] {
  const issues: ValidationIssue[] = [];
  const [program] = command;
  if (program === undefined || program === "") {
    issues.push({ path: "/0", found: "missing", expected: "the name or path of a program" });
  }
  for (const [index, word] of command.entries()) {
    if (typeof word !== "string" || word.includes("\0")) {
      issues.push({
        path: `/${index}`,
        found: typeof word === "string" ? "a string with a NUL" : `a ${typeof word}`,
        expected: "a string without NUL",
      });
    }
  }
  if (program === undefined || issues.length > 0) throw new ValidationError("command", issues);
  return [program, ...command.slice(1)];
}

function requireOptions(options: CommandOptions) {
  return optionCounts("command options", options, {
    timeoutMs: { fallback: 10 * 60 * 1_000, min: 1, max: TIMER_MAX_MS },
    outputBytesMax: { fallback: 1_048_576, min: 0, max: 1_073_741_824 },
    killAfterMs: { fallback: 2_000, min: 0, max: TIMER_MAX_MS },
    transcriptEntries: { fallback: 0, min: 0, max: PAGE_MAX },
  });
}
