/**
 * `holdfast.json`: says outside of LevelDB which store a directory holds and how often it was
 * opened. It is written after the identity row is durable, so it can only be behind. Where the
 * database does not reach what the file says, rows were lost or a copy was mixed in.
 */
import { readFile } from "node:fs/promises";
import { writeFileDurably } from "../../durable-files.js";
import { CorruptionError } from "../../errors.js";
import { type Identity, STORE_FORMAT } from "../identity.js";

export interface IdentityFile {
  readonly format: number;
  readonly id: string;
  readonly createdAt: string;
  readonly epoch: number;
}

const ADVICE =
  "Restore the directory from a backup; do not remove the file, it is what tells that rows are gone.";

/**
 * Reads the file; `undefined` where there is none.
 * @throws CorruptionError it is not readable, or has another format
 */
export async function readIdentityFile(path: string): Promise<IdentityFile | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  const { format, id, createdAt, epoch } = parse(path, text);
  if (Number.isSafeInteger(format) && format !== STORE_FORMAT) {
    throw new CorruptionError(
      path,
      `the store has format ${format} where this release reads ${STORE_FORMAT}`,
      "Open it with the release that wrote it.",
    );
  }
  const isWhole =
    format === STORE_FORMAT &&
    typeof id === "string" &&
    typeof createdAt === "string" &&
    Number.isSafeInteger(epoch);
  if (!isWhole) throw unreadable(path);
  return { format, id, createdAt, epoch: Number(epoch) };
}

/** Replaces the file at once: a crash leaves the old one or the new one. */
export async function writeIdentityFile(path: string, identity: Identity): Promise<void> {
  const { format, id, createdAt, epoch } = identity;
  const content: IdentityFile = { format, id, createdAt, epoch };
  const text = `${JSON.stringify(content, undefined, 2)}
`;
  await writeFileDurably(path, `${path}.tmp`, [text]);
}

/**
 * Compares the identity row with the file, before anything is written.
 * @throws CorruptionError the row is missing, is another store's, or is older than the file
 */
export function compareIdentity(path: string, file: IdentityFile, row: Identity | undefined): void {
  if (row === undefined) {
    throw new CorruptionError(path, "the database does not hold the identity row", ADVICE);
  }
  if (row.id !== file.id || row.createdAt !== file.createdAt) {
    throw new CorruptionError(path, "the database belongs to another store", ADVICE);
  }
  if (row.epoch < file.epoch) {
    const found = `the database was opened ${row.epoch} times, the file says ${file.epoch}`;
    throw new CorruptionError(path, `${found}, so rows were lost or it is an older copy`, ADVICE);
  }
}

function parse(path: string, text: string): { readonly [name: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Reported below, with the file and without its content.
  }
  throw unreadable(path);
}

function unreadable(path: string): CorruptionError {
  return new CorruptionError(
    path,
    "it is not an identity file of holdfast",
    "Nothing was changed. Restore it from a backup, or move it away to have it written anew.",
  );
}
