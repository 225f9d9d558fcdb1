/** `store gc`: removes images that nothing refers to. It holds the store, so nobody admits meanwhile. */
import { fileBlobStore } from "../blobs/files.js";
import { sweepBlobs } from "../sessions/images.js";
import { blobsPath } from "../store/level/layout.js";
import { withExistingStore } from "./existing-store.js";
import type { Output } from "./output.js";
import { count } from "./plain-text.js";

export async function collectGarbage(directory: string, output: Output): Promise<void> {
  const report = await withExistingStore(directory, (store) =>
    sweepBlobs(store, fileBlobStore(blobsPath(directory))),
  );
  const { kept, removed, removedBytes } = report;
  await output.print(
    report,
    `${count(removed, "image")} removed (${count(removedBytes, "byte")}), ${kept} kept.`,
  );
}
