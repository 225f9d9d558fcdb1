/** What went wrong at opening, as an error of ours that says what to do. */
import { CorruptionError, isHoldfastError, StoreUnavailable } from "../../errors.js";
import { levelCode } from "./backend.js";
import { lockedBy } from "./holder.js";

/** What the system says, by its code or by the text that LevelDB passes on, and what to do. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/\bEACCES\b|\bEPERM\b|permission denied/i, "permission is denied; give this user access to it"],
  [/\bEROFS\b|read-only file system/i, "the file system is read-only; mount it for writing"],
  [/\bENOSPC\b|no space left/i, "the disk is full; make room and open it again"],
  [/\bEDQUOT\b|quota exceeded/i, "the disk quota is used up; make room and open it again"],
  [/\b[EN]+MFILE\b|too many open files/i, "too many files are open; raise the limit of open files"],
  [/\bENOTDIR\b|\bEEXIST\b|not a directory/i, "the path leads through a file; choose a directory"],
  [/\bENOENT\b|no such file/i, "there is no store"],
];

/** Gives errors of ours as they are, and maps those of LevelDB and the system. */
export async function openingError(root: string, error: unknown): Promise<Error> {
  if (isHoldfastError(error)) return error;
  const code = levelCode(error);
  if (code === "LEVEL_LOCKED") return lockedBy(root, error);
  const text = deepestText(error);
  if (code === "LEVEL_CORRUPTION") return new CorruptionError(root, text, undefined, error);
  const known = CAUSES.find(([pattern]) => pattern.test(text))?.[1] ?? text;
  return new StoreUnavailable("open", `at ${root}, ${known}`, error);
}

/** LevelDB's own words are in the cause of the error that says that opening failed. */
function deepestText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : deepestText(error.cause);
}
