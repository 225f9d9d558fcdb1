/** Files and directories that are there for good once a call returns. Imports nothing of the library. */
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/**
 * Writes a file in one step: a crash leaves what was there before, or the whole of the new. The
 * draft beside it, under the name given, is what a crash may leave over.
 */
export async function writeFileDurably(
  path: string,
  draft: string,
  parts: readonly (string | Uint8Array)[],
): Promise<void> {
  try {
    const file = await open(draft, "w");
    try {
      for (const part of parts) await file.appendFile(part);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes a directory and those above it that are missing. */
export async function makeDirectoryDurably(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  const last = dirname(resolve(first));
  for (let made = resolve(path); made !== last; made = dirname(made)) {
    await syncDirectory(dirname(made));
  }
}

/** Makes what was renamed or made in it durable. Systems that cannot open directories do so alone. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
