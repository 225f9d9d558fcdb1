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

/** A file or store that a command needs is not there. Nothing was made in its place. */
export class MissingError extends HoldfastError {
  readonly _tag = "MissingError";
  readonly code = "HOLDFAST_MISSING";
  constructor(
    readonly kind: "store" | "file",
    readonly path: string,
    cause?: unknown,
  ) {
    super(
      kind === "store"
        ? `There is no store at ${show(path)}. \`holdfast session ID\` makes one; --store names another directory.`
        : `There is no file ${show(path)} to read.`,
      cause,
    );
  }
}
