/**
 * Blobs: what is too large for a row, kept under the digest of its content. The port, and the ids
 * that tie a blob to its bytes for every store behind it.
 */
import { createHash } from "node:crypto";

/** `sha256:` and 64 hex digits. */
export type BlobId = string;

export interface Blob {
  /** A media type such as `image/png`. */
  readonly mediaType: string;
  /** Base64 with padding, as it was put. */
  readonly data: string;
}

/**
 * Where blobs are kept. Content never changes under an id, so every call may be repeated. Of two
 * callers that put the same blob both succeed.
 */
export interface BlobStore {
  /**
   * Makes a blob durable before it returns. Putting what is there already does nothing.
   * @throws StoreUnavailable it may not be there
   */
  put(blob: Blob): Promise<BlobId>;
  /**
   * The blob, verified against its id; `undefined` where there is none.
   * @throws CorruptionError what is stored is not what was put
   * @throws StoreUnavailable
   */
  get(id: BlobId): Promise<Blob | undefined>;
  /** Whether there is one, without reading it. */
  has(id: BlobId): Promise<boolean>;
  /** Removes a blob; removing what is not there does nothing. */
  delete(id: BlobId): Promise<void>;
  /** Every blob, in no order, with the bytes that it takes. */
  list(): AsyncIterable<{ readonly id: BlobId; readonly bytes: number }>;
}

const ID = /^sha256:[0-9a-f]{64}$/;

/** The id of a blob: SHA-256 over its media type, NUL, and its base64 text. */
export function blobIdOf({ mediaType, data }: Blob): BlobId {
  return `sha256:${createHash("sha256").update(mediaType).update("\0").update(data).digest("hex")}`;
}

export function isBlobId(value: unknown): value is BlobId {
  return typeof value === "string" && ID.test(value);
}

/** Base64 with padding and nothing else in it, the one text that stands for these bytes. */
export function isBase64(text: string): boolean {
  return text.length % 4 === 0 && Buffer.from(text, "base64").toString("base64") === text;
}

/** `type/subtype` of RFC 6838, without parameters, in lower case. */
export function isMediaType(text: string): boolean {
  return /^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}$/.test(text);
}
