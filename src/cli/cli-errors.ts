/** Errors of the command line itself. They never cross the library's face. */
import { HoldfastError, show } from "../errors.js";

/** The command line cannot be read as one. */
export class UsageError extends HoldfastError {
  readonly _tag = "UsageError";
  readonly code = "HOLDFAST_USAGE";
  constructor(reason: string, cause?: unknown) {
    super(`${reason} See \`holdfast --help\`.`, cause);
  }
}

/** What a command needs is not there. Nothing was made in its place. */
export class MissingError extends HoldfastError {
  readonly _tag = "MissingError";
  readonly code = "HOLDFAST_MISSING";
  constructor(
    readonly kind: "store" | "file" | "program",
    readonly path: string,
    cause?: unknown,
  ) {
    super(reasons[kind](show(path)), cause);
  }
}

const reasons = {
  store: (path: string) =>
    `There is no store at ${path}. \`holdfast session ID\` makes one; --store names another directory.`,
  file: (path: string) => `There is no file ${path} to read.`,
  program: (path: string) =>
    `There is no program ${path} that may be executed. Nothing was admitted; check the word after --exec.`,
} as const;
