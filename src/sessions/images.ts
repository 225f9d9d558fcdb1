/**
 * Images of inputs. They leave the payload for the blob store before its row is written, and come
 * back before a turn sees it, so that rows stay small and an image that is sent twice is kept once.
 */
import { type Blob, type BlobId, type BlobStore, blobIdOf, isBlobId } from "../blobs/blob-store.js";
import { CorruptionError, NotFoundError, ValidationError } from "../errors.js";
import { PAGE_MAX } from "../limits.js";
import type { JsonObject, JsonValue, Key, StateStore } from "../store/port.js";
import type { Block, InlineImage, InputPayload, StoredImage } from "./input.js";
import { sessionsPrefix, type TranscriptEntry } from "./records.js";

/** What a payload's images are made of once they have left it. */
export interface PayloadImages {
  /** Blobs to keep, by their ids. */
  readonly inline: ReadonlyMap<BlobId, Blob>;
  /** Blobs that the sender says are there, with the pointer to where it says so. */
  readonly referred: ReadonlyMap<string, BlobId>;
}

export const NO_IMAGES: PayloadImages = { inline: new Map(), referred: new Map() };

/** The blocks with blob ids in place of image data. */
export function externalise(blocks: readonly Block[]): {
  readonly blocks: readonly Block[];
  readonly images: PayloadImages;
} {
  const inline = new Map<BlobId, Blob>();
  const referred = new Map<string, BlobId>();
  const stored = blocks.map((block, index): Block => {
    if (block.type !== "image") return block;
    if (!("data" in block)) {
      referred.set(`/blocks/${index}/blob`, block.blob);
      return block;
    }
    const { mediaType, data } = block;
    const blob = blobIdOf({ mediaType, data });
    inline.set(blob, { mediaType, data });
    return { type: "image", mediaType, blob };
  });
  return { blocks: stored, images: { inline, referred } };
}

/**
 * Makes the images of a payload durable. What is kept for an input that then is not admitted is
 * collected by the sweep.
 * @throws ValidationError a blob that the sender refers to is not there
 * @throws StoreUnavailable
 */
export async function keepImages(blobs: BlobStore, images: PayloadImages): Promise<void> {
  const issues = [];
  for (const [path, id] of images.referred) {
    if (await blobs.has(id)) continue;
    issues.push({ path, found: "a blob that is not kept here", expected: "one that is, or data" });
  }
  if (issues.length > 0) throw new ValidationError("input", issues);
  for (const blob of images.inline.values()) await blobs.put(blob);
}

/**
 * The payload as a turn gets it, its images with their data.
 * @throws NotFoundError an image is gone | CorruptionError an image is not what was put
 */
export async function hydrate(blobs: BlobStore, payload: InputPayload): Promise<InputPayload> {
  if (!("blocks" in payload) || payload.blocks === undefined) return payload;
  const blocks: Block[] = [];
  for (const block of payload.blocks) {
    if (!isStoredImage(block)) blocks.push(block);
    else {
      const blob = await blobs.get(block.blob);
      if (blob === undefined) throw new NotFoundError("blob", block.blob);
      blocks.push(hydrated(block, blob));
    }
  }
  return { ...payload, blocks };
}

/** An entry of the transcript as a turn gets it. An image that is gone is a text that says so. */
export async function hydrateEntry(
  blobs: BlobStore,
  entry: TranscriptEntry,
): Promise<TranscriptEntry> {
  const messages: JsonObject[] = [];
  for (const message of entry.messages) {
    const { blocks } = message;
    if (!Array.isArray(blocks) || !blocks.some(isStoredImage)) messages.push(message);
    else {
      const shown: Block[] = [];
      for (const block of blocks as readonly Block[]) shown.push(await shownBlock(blobs, block));
      messages.push({ ...message, blocks: shown as unknown as JsonValue });
    }
  }
  return { ...entry, messages };
}

async function shownBlock(blobs: BlobStore, block: Block): Promise<Block> {
  if (!isStoredImage(block)) return block;
  const blob = await blobs.get(block.blob);
  if (blob !== undefined) return hydrated(block, blob);
  return { type: "text", text: `[the image ${block.blob} is not kept any more]` };
}

function hydrated({ mediaType, blob: id }: StoredImage, { data }: Blob): InlineImage & StoredImage {
  return { type: "image", mediaType, data, blob: id };
}

function isStoredImage(block: unknown): block is StoredImage {
  const { type, blob } = { ...(block as Partial<StoredImage>) };
  return type === "image" && isBlobId(blob);
}

/** Every blob that a record of a session refers to, with the record's key; some more than once. */
async function* referredBlobs(
  store: StateStore,
): AsyncIterable<{ readonly key: Key; readonly id: BlobId }> {
  let after: Key | undefined;
  do {
    const page = await store.list({ prefix: sessionsPrefix, after, limit: PAGE_MAX });
    for (const { key, value } of page.records) {
      for (const id of blobIdsIn(value)) yield { key, id };
    }
    after = page.next;
  } while (after !== undefined);
}

/** Whatever looks like the id of a blob counts as one: a sweep must not take too much. */
function* blobIdsIn(value: JsonValue): Iterable<BlobId> {
  if (isBlobId(value)) yield value;
  else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) yield* blobIdsIn(item as JsonValue);
  }
}

/**
 * Reads every blob that a record refers to, once.
 * @returns how many blobs there are that are referred to
 */
export async function auditBlobs(
  store: StateStore,
  blobs: BlobStore,
  report: (key: Key, found: string) => void,
): Promise<number> {
  const faults = new Map<BlobId, string | undefined>();
  for await (const { key, id } of referredBlobs(store)) {
    if (!faults.has(id)) faults.set(id, await faultOf(blobs, id));
    const fault = faults.get(id);
    if (fault !== undefined) report(key, `its image ${id} ${fault}`);
  }
  return faults.size;
}

async function faultOf(blobs: BlobStore, id: BlobId): Promise<string | undefined> {
  try {
    return (await blobs.get(id)) === undefined ? "is not there" : undefined;
  } catch (error) {
    if (error instanceof CorruptionError) return "is damaged";
    throw error;
  }
}

export interface SweepReport {
  readonly kept: number;
  readonly removed: number;
  /** Bytes that were given back. */
  readonly removedBytes: number;
}

/**
 * Removes blobs that no record refers to. Nobody may admit inputs meanwhile: an image is put before
 * the row that refers to it.
 */
export async function sweepBlobs(store: StateStore, blobs: BlobStore): Promise<SweepReport> {
  const referred = new Set<BlobId>();
  for await (const { id } of referredBlobs(store)) referred.add(id);
  const report = { kept: 0, removed: 0, removedBytes: 0 };
  for await (const { id, bytes } of blobs.list()) {
    if (referred.has(id)) report.kept += 1;
    else {
      await blobs.delete(id);
      report.removed += 1;
      report.removedBytes += bytes;
    }
  }
  return report;
}
