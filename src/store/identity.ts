/**
 * The identity row of a store: who it is, which format it has, how often it was opened, and up to
 * which revision numbers are reserved. Revisions are handed out from reserved ranges, so that none
 * repeats after a crash although no commit pays for keeping count.
 */
import { randomUUID } from "node:crypto";
import { CorruptionError, StoreSerialization } from "../errors.js";
import type { Backend } from "./backend.js";
import { encodeKey } from "./keys.js";
import type { JsonValue, Key, Revision } from "./port.js";
import { decodeRecord, encodeRecord, recordHead } from "./record.js";

/** The version of everything below the port: keys, envelopes, identity, directory layout. */
export const STORE_FORMAT = 1;

/** Revisions reserved at a time. */
export const REVISION_RANGE = 2 ** 20;

const IDENTITY_KEY: Key = ["store"];
export const IDENTITY_ENCODED = encodeKey(IDENTITY_KEY);
const IDENTITY_OPERATION = "store.open";

export interface Identity {
  readonly id: string;
  readonly format: typeof STORE_FORMAT;
  /** ISO 8601. */
  readonly createdAt: string;
  /** No revision above it was ever given out. */
  readonly revisionCeiling: Revision;
  /** How often the store was opened. */
  readonly epoch: number;
}

export interface OpenIdentityOptions {
  /** The instant of founding, ISO 8601. */
  readonly nowIso: string;
  /** Sees the identity as it was found, before anything is written; may throw. */
  readonly verify: (found: Identity | undefined) => void;
}

/**
 * Reads the identity and raises its epoch, or founds a store where the backend holds nothing.
 * Reserves the first range of revisions. Durable on return.
 * @throws CorruptionError rows without an identity, or an identity of another format
 */
export async function openIdentity(
  backend: Backend,
  { nowIso, verify }: OpenIdentityOptions,
): Promise<Identity> {
  const text = await backend.get(IDENTITY_ENCODED);
  const found = text === undefined ? undefined : readIdentity(text);
  verify(found);
  if (found === undefined && (await backend.range({ gte: "", limit: 1 })).length > 0) {
    throw new CorruptionError("Record store", "the identity row is missing although records exist");
  }
  const identity = found === undefined ? foundIdentity(nowIso) : nextReign(found);
  const batch = backend.batch();
  batch.put(IDENTITY_ENCODED, encodeIdentity(identity));
  await batch.write();
  return identity;
}

/** The identity of a store that is opened for the first time. */
export function foundIdentity(createdAt: string): Identity {
  const id = randomUUID();
  return nextReign({ id, format: STORE_FORMAT, createdAt, revisionCeiling: 0, epoch: 0 });
}

/** The identity row's text. It takes the first revision of the range that it reserves. */
export function encodeIdentity(identity: Identity): string {
  const head = recordHead(identity.revisionCeiling - REVISION_RANGE + 1, IDENTITY_OPERATION);
  return encodeRecord(IDENTITY_ENCODED, head, JSON.stringify(identity));
}

/** Gives out revisions and says when the next range has to be written. */
export class Revisions {
  #identity: Identity;
  #last: Revision;

  /** Continues after the revision of the identity row that `openIdentity` wrote. */
  constructor(identity: Identity) {
    this.#identity = identity;
    this.#last = identity.revisionCeiling - REVISION_RANGE + 1;
  }

  /**
   * The next revision. Where it opens a new range, `reserve` gets the identity row that must become
   * durable in the same batch.
   */
  next(reserve: (encodedKey: string, text: string) => void): Revision {
    this.#last += 1;
    if (this.#last > this.#identity.revisionCeiling) {
      const revisionCeiling = this.#identity.revisionCeiling + REVISION_RANGE;
      this.#identity = { ...this.#identity, revisionCeiling };
      reserve(IDENTITY_ENCODED, encodeIdentity(this.#identity));
      this.#last += 1;
    }
    return this.#last;
  }
}

function nextReign(identity: Identity): Identity {
  const revisionCeiling = identity.revisionCeiling + REVISION_RANGE;
  return { ...identity, revisionCeiling, epoch: identity.epoch + 1 };
}

function readIdentity(text: string): Identity {
  try {
    return parseIdentity(decodeRecord(IDENTITY_KEY, IDENTITY_ENCODED, text).value);
  } catch (error) {
    if (!(error instanceof StoreSerialization)) throw error;
    throw new CorruptionError("Record store", error.reason, undefined, error);
  }
}

function parseIdentity(value: JsonValue): Identity {
  const row = typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  const { id, format, createdAt, revisionCeiling, epoch } = row as { [name: string]: JsonValue };
  if (format !== STORE_FORMAT) {
    throw new CorruptionError(
      "Record store",
      `the store has format ${JSON.stringify(format)} where this release reads ${STORE_FORMAT}`,
      "Open it with the release that wrote it.",
    );
  }
  if (
    typeof id !== "string" ||
    typeof createdAt !== "string" ||
    !Number.isSafeInteger(revisionCeiling) ||
    !Number.isSafeInteger(epoch)
  ) {
    throw new CorruptionError("Record store", "the identity row is not complete");
  }
  return {
    id,
    format,
    createdAt,
    revisionCeiling: Number(revisionCeiling),
    epoch: Number(epoch),
  };
}
