/** Blobs in memory, for tests and for stores that are in memory themselves. */
import { type Blob, type BlobId, type BlobStore, blobIdOf } from "./blob-store.js";

export function memoryBlobStore(): BlobStore {
  const blobs = new Map<BlobId, Blob>();
  return {
    put: async ({ mediaType, data }) => {
      const id = blobIdOf({ mediaType, data });
      blobs.set(id, { mediaType, data });
      return id;
    },
    get: async (id) => blobs.get(id),
    has: async (id) => blobs.has(id),
    delete: async (id) => {
      blobs.delete(id);
    },
    list: async function* () {
      for (const [id, { data }] of [...blobs]) yield { id, bytes: data.length };
    },
  };
}
