/**
 * Takes `--exec PROGRAM ARG…` off a command line. All words after `--exec` belong to the program,
 * dashes and all, so it comes last; no option parser gets to see them.
 */
import { UsageError } from "./cli-errors.js";

export interface SplitWords {
  readonly words: readonly string[];
  /** The program and its arguments, where `--exec` is given. */
  readonly exec?: readonly string[];
}

const FLAG = "--exec";

/** @throws UsageError `--exec` without a program */
export function splitExec(argv: readonly string[]): SplitWords {
  const at = argv.findIndex((word) => word === FLAG || word.startsWith(`${FLAG}=`));
  if (at < 0) return { words: argv };
  const joined = argv[at]?.slice(FLAG.length + 1) ?? "";
  const exec = joined === "" ? argv.slice(at + 1) : [joined, ...argv.slice(at + 1)];
  if (exec[0] === undefined || exec[0] === "") {
    throw new UsageError("--exec needs a program, as in `--exec node answer.mjs`.");
  }
  return { words: argv.slice(0, at), exec };
}
