/**
 * Blobs as files in a directory: `<first two digits>/<digest>`, each the media type, a line end, and
 * the bytes. A file is there under its name only once it is whole and synced.
 */
import { randomUUID } from "node:crypto";
import { access, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeDirectoryDurably, writeFileDurably } from "../durable-files.js";
import { CorruptionError, StoreUnavailable, show } from "../errors.js";
import { type Blob, type BlobId, type BlobStore, blobIdOf, isBlobId } from "./blob-store.js";

const PREFIX = "sha256:";
const DRAFT = ".draft";
const LINE_END = 0x0a;

/** The directory is made with the first blob. */
export function fileBlobStore(directory: string): BlobStore {
  return new FileBlobStore(directory);
}

class FileBlobStore implements BlobStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async put(blob: Blob): Promise<BlobId> {
    const id = blobIdOf(blob);
    const path = this.#path(id);
    await unavailable("keep a blob", async () => {
      if (await exists(path)) return;
      await makeDirectoryDurably(dirname(path));
      const parts = [`${blob.mediaType}\n`, Buffer.from(blob.data, "base64")];
      await writeFileDurably(path, `${path}.${randomUUID()}${DRAFT}`, parts);
    });
    return id;
  }

  async get(id: BlobId): Promise<Blob | undefined> {
    if (!isBlobId(id)) return undefined;
    const path = this.#path(id);
    const bytes = await unavailable("read a blob", () => unlessMissing(readFile(path)));
    if (bytes === undefined) return undefined;
    const head = bytes.indexOf(LINE_END);
    const blob = {
      mediaType: bytes.subarray(0, Math.max(head, 0)).toString("latin1"),
      data: bytes.subarray(head + 1).toString("base64"),
    };
    if (head < 0 || blobIdOf(blob) !== id) {
      throw new CorruptionError(
        path,
        "it does not hold what its name says",
        "Restore the file from a backup.",
      );
    }
    return blob;
  }

  async has(id: BlobId): Promise<boolean> {
    return isBlobId(id) && unavailable("look for a blob", () => exists(this.#path(id)));
  }

  async delete(id: BlobId): Promise<void> {
    if (!isBlobId(id)) return;
    await unavailable("remove a blob", () => rm(this.#path(id), { force: true }));
  }

  async *list(): AsyncIterable<{ readonly id: BlobId; readonly bytes: number }> {
    const listed = async (path: string) =>
      (await unavailable("list blobs", () => unlessMissing(readdir(path)))) ?? [];
    for (const folder of await listed(this.#directory)) {
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      for (const name of await listed(join(this.#directory, folder))) {
        const path = join(this.#directory, folder, name);
        // What a kill has left of a blob that was being written; nobody was told of it.
        if (name.endsWith(DRAFT)) await rm(path, { force: true });
        else if (isBlobId(PREFIX + name)) {
          const found = await unlessMissing(stat(path));
          if (found !== undefined) yield { id: PREFIX + name, bytes: found.size };
        }
      }
    }
  }

  #path(id: BlobId): string {
    const digest = id.slice(PREFIX.length);
    return join(this.#directory, digest.slice(0, 2), digest);
  }
}

async function exists(path: string): Promise<boolean> {
  return (await unlessMissing(access(path).then(() => true))) ?? false;
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function unavailable<T>(operation: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const reason = error instanceof Error ? error.message : show(String(error));
    throw new StoreUnavailable(operation, reason, error);
  }
}
