/** Looks for the program of `--exec` before any input is given to it. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { MissingError } from "./cli-errors.js";

/**
 * A program that is not there fails every attempt of every input, so a misspelt name would use all of
 * them up. Found is what the system would find: a path as it is, a name in the directories of PATH.
 * @throws MissingError there is no such program
 */
export function requireProgram(name: string): void {
  // What may be executed, and under which endings, is another matter there.
  if (process.platform === "win32") return;
  const places = name.includes("/")
    ? [name]
    : (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory || ".", name));
  if (!places.some(isProgram)) throw new MissingError("program", name);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not for us: the next place may have it.
    return false;
  }
}
