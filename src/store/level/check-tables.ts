/** Checks one table file: that it is there, whole, and has intact frames. Changes nothing. */
import { closeSync, fstatSync, openSync } from "node:fs";
import { CorruptionError } from "../../errors.js";
import { findTableDamage } from "./table-format.js";

export interface TableCheck {
  /** The size that the MANIFEST has noted. */
  readonly size: number;
  /** Whether blocks of records are read as well, which takes as long as reading the file. */
  readonly withData: boolean;
  /** Whether the table may have been removed meanwhile, as LevelDB does once it has merged it. */
  readonly mayBeGone?: boolean;
}

/** @throws CorruptionError naming the file, and the offset where there is one */
export function checkTable(path: string, { size, withData, mayBeGone = false }: TableCheck): void {
  const fd = openTable(path);
  if (fd === undefined && mayBeGone) return;
  if (fd === undefined) throw damaged(path, "it is missing although the MANIFEST names it");
  try {
    const found = fstatSync(fd).size;
    if (found !== size) {
      throw damaged(path, `it has ${found} bytes where the MANIFEST has noted ${size}`);
    }
    const damage = findTableDamage({ fd, size }, withData);
    if (damage !== undefined) throw damaged(path, damage.what, damage.offset);
  } finally {
    closeSync(fd);
  }
}

function openTable(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** A file of LevelDB that cannot be trusted. */
export function damaged(path: string, found: string, offset?: number): CorruptionError {
  return new CorruptionError(
    path,
    offset === undefined ? found : `${found} at offset ${offset}`,
    "Nothing was changed. Keep a copy of the directory, then restore it from a backup.",
  );
}
