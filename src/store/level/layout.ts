/** Where the parts of a store lie in its directory, and how LevelDB names its files. */
import { join } from "node:path";

/** Who the store is: format, id, when it was created, how often it was opened. */
export const identityPath = (root: string): string => join(root, "holdfast.json");

/** Who has it open; for messages only. */
export const holderPath = (root: string): string => join(root, "holder.json");

/** Blobs, as files. */
export const blobsPath = (root: string): string => join(root, "blobs");

/** LevelDB's own directory. */
export const levelPath = (root: string): string => join(root, "level");

export interface LevelFiles {
  /** Numbers of files by kind, in order. */
  readonly logs: readonly number[];
  readonly manifests: readonly number[];
  /** Table number → file name; older releases of LevelDB ended names in `.sst`. */
  readonly tables: ReadonlyMap<number, string>;
  readonly hasCurrent: boolean;
}

/** Sorts the names in LevelDB's directory. */
export function sortLevelFiles(names: readonly string[]): LevelFiles {
  const tables = new Map<number, string>();
  const logs: number[] = [];
  const manifests: number[] = [];
  for (const name of names) {
    const match = /^(?:(\d+)\.(log|ldb|sst)|MANIFEST-(\d+))$/.exec(name);
    if (match === null) continue;
    if (match[3] !== undefined) manifests.push(Number(match[3]));
    else if (match[2] === "log") logs.push(Number(match[1]));
    else tables.set(Number(match[1]), name);
  }
  const up = (a: number, b: number) => a - b;
  return {
    logs: logs.sort(up),
    manifests: manifests.sort(up),
    tables,
    hasCurrent: names.includes("CURRENT"),
  };
}

export function logName(number: number): string {
  return `${String(number).padStart(6, "0")}.log`;
}

export function tableName(number: number): string {
  return `${String(number).padStart(6, "0")}.ldb`;
}
