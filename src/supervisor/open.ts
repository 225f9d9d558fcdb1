/** Opening the embedded stores: the one place of the system where adapters are chosen. */
import type { BlobStore } from "../blobs/blob-store.js";
import { fileBlobStore } from "../blobs/files.js";
import { memoryBlobStore } from "../blobs/memory.js";
import { blobsPath } from "../store/level/layout.js";
import type { StateStore } from "../store/port.js";

/** Loaded on demand: a host with a store of its own does not pay for LevelDB at start. */
export async function openStore(path: string): Promise<StateStore> {
  const { levelStore } = await import("../store/level/level-store.js");
  return levelStore(path);
}

/** Blobs live as long as the records that refer to them: in the same directory, or in memory. */
export function blobsOf(store: string | StateStore): BlobStore {
  if (typeof store === "string") return fileBlobStore(blobsPath(store));
  const known = blobsOfStores.get(store) ?? memoryBlobStore();
  blobsOfStores.set(store, known);
  return known;
}

const blobsOfStores = new WeakMap<StateStore, BlobStore>();
