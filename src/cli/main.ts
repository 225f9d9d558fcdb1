#!/usr/bin/env node
/**
 * The command line. It reads words, hands them to the command that they name, and turns what happens
 * into an exit code. What a command needs is loaded when it runs. See `docs/cli.md`.
 */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { UsageError } from "./cli-errors.js";
import { splitExec } from "./exec-words.js";
import { DEFAULT_STORE, withExistingStore } from "./existing-store.js";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit-codes.js";
import { type Operation, operations } from "./operations.js";
import { Output } from "./output.js";
import { listenForSignals } from "./signals.js";

/** What the commands of one invocation share. */
interface Invocation {
  readonly output: Output;
  readonly exec: readonly string[] | undefined;
  code: ExitCode;
}

interface SessionWords {
  readonly input?: string;
  readonly timeout?: number;
  readonly steer: boolean;
  readonly key?: string;
}

interface GlobalOptions {
  readonly store: string;
  readonly json: boolean;
}

async function main(argv: readonly string[]): Promise<ExitCode> {
  const output = new Output({ isJson: false, stdout: process.stdout, stderr: process.stderr });
  const fail = (error: unknown): ExitCode => {
    output.fault(error);
    return exitCodeOf(error);
  };
  process.on("uncaughtException", (error) => process.exit(fail(error)));
  try {
    const { words, exec } = splitExec(argv);
    const invocation: Invocation = { output, exec, code: exitCodes.ok };
    await makeProgram(invocation).parseAsync(words, { from: "user" });
    return output.closed.aborted ? exitCodes.outputClosed : invocation.code;
  } catch (error) {
    if (!(error instanceof CommanderError)) return fail(error);
    if (error.exitCode === 0) return exitCodes.ok;
    // The help that commander prints where a command is missing has said all.
    if (error.code === "commander.help") return exitCodes.usage;
    return fail(new UsageError(`${error.message.replace(/^error: /, "").replace(/\.?$/, ".")}`));
  } finally {
    await output.flush();
  }
}

function makeProgram(invocation: Invocation): Command {
  const program = new Command("holdfast")
    .description("Durable agent sessions: what is admitted survives a crash at any moment.")
    .option("--store <dir>", "directory of the store", directory, DEFAULT_STORE)
    .option("--json", "one JSON value a line on stdout", false)
    .version(version(), "--version")
    .exitOverride()
    // Faults of parsing come out as errors, and are printed like every other fault.
    .configureOutput({ outputError: () => {} })
    .hook("preAction", (_, command) => {
      invocation.output.isJson = command.optsWithGlobals<GlobalOptions>().json;
      if (invocation.exec !== undefined && command.name() !== "session") {
        throw new UsageError("--exec belongs to `holdfast session`.");
      }
    });
  addSession(program, invocation);
  addSessions(program, invocation);
  addInputs(program, invocation);
  addStore(program, invocation);
  return program;
}

function addSession(program: Command, invocation: Invocation): void {
  program
    .command("session <id>")
    .description(
      "feed a session from lines: each is a prompt, or a JSON input where it begins with {",
    )
    .option("--input <file>", "read the lines from a file instead of stdin")
    .option("--steer", "send prompts as steer: into the turn in progress, before what waits", false)
    .option("--key <prefix>", "idempotency keys for lines that have none: the prefix and the line")
    .option("--timeout <ms>", "time for one turn of the program, in milliseconds", wholeNumber)
    .option(
      "--exec <program...>",
      "the program that does the turns, with its arguments; comes last",
    )
    .action(async (id: string, own: SessionWords, command: Command) => {
      const { runSession } = await import("./session-command.js");
      const { store } = command.optsWithGlobals<GlobalOptions>();
      const { exec, output } = invocation;
      const signals = listenForSignals();
      const code = await runSession(
        {
          id,
          store,
          exec,
          input: own.input,
          timeoutMs: own.timeout,
          lines: { isSteer: own.steer, keyPrefix: own.key },
        },
        output,
        { stdin: process.stdin, stderr: process.stderr, stop: signals.stop },
      );
      invocation.code = signals.code() ?? code;
    });
}

function addSessions(program: Command, { output }: Invocation): void {
  const sessions = program
    .command("sessions")
    .description("look at the sessions of a store, and operate on one");
  sessions
    .command("list")
    .description("all sessions, with their state and counts")
    .action(async (_, command: Command) => {
      const { listSessions } = await import("./sessions-command.js");
      await withExistingStore(storeOf(command), (store) => listSessions(store, output));
    });
  sessions
    .command("show <id>")
    .description("one session, with its last boundaries; a unique beginning of its id will do")
    .action(async (id: string, _, command: Command) => {
      const { showSession } = await import("./sessions-command.js");
      const directory = storeOf(command);
      await withExistingStore(directory, (store) => showSession(store, id, output, directory));
    });
  for (const [operation, description] of Object.entries(operations)) {
    const command = sessions.command(`${operation} <id>`).description(description);
    if (operation === "destroy") command.option("--yes", "do not ask whether it is meant", false);
    command.action(async (given: string, own: { yes?: boolean }) => {
      const { operateSession } = await import("./operate-command.js");
      await operateSession(
        {
          operation: operation as Operation,
          given,
          directory: storeOf(command),
          isSure: own.yes === true,
        },
        output,
        { stdin: process.stdin, stderr: process.stderr },
      );
    });
  }
}

function addInputs(program: Command, { output }: Invocation): void {
  const inputs = program.command("inputs").description("look at the inputs of a session");
  inputs
    .command("list <session>")
    .description("the inputs of a session in the order of their admission")
    .option("--phase <phase>", "only inputs in this phase, such as queued or consumed")
    .action(async (session: string, own: { phase?: string }, command: Command) => {
      const { listSessionInputs } = await import("./inputs-command.js");
      await withExistingStore(storeOf(command), (store) =>
        listSessionInputs(store, session, own, output),
      );
    });
  inputs
    .command("show <session> <input>")
    .description("one input with its history, completion and receipt")
    .action(async (session: string, input: string, _, command: Command) => {
      const { showInput } = await import("./inputs-command.js");
      await withExistingStore(storeOf(command), (store) =>
        showInput(store, { session, input }, output),
      );
    });
}

function addStore(program: Command, invocation: Invocation): void {
  const store = program.command("store").description("look at a store as a whole");
  store
    .command("verify")
    .description("check every file, record and session; exit code 7 where something is wrong")
    .action(async (_, command: Command) => {
      const { verifyStore } = await import("./verify-command.js");
      invocation.code = await verifyStore(storeOf(command), invocation.output);
    });
  store
    .command("gc")
    .description("remove images that nothing refers to, and say how many bytes that gave back")
    .action(async (_, command: Command) => {
      const { collectGarbage } = await import("./gc-command.js");
      await collectGarbage(storeOf(command), invocation.output);
    });
}

function storeOf(command: Command): string {
  return command.optsWithGlobals<GlobalOptions>().store;
}

/** An empty word would mean the directory that one happens to be in. */
function directory(word: string): string {
  if (word === "") throw new UsageError("--store needs a directory.");
  return word;
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new UsageError("--timeout takes a whole number from 1.");
  return Number(text);
}

function version(): string {
  const file = new URL("../../../package.json", import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

process.exit(await main(process.argv.slice(2)));
