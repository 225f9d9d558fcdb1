/**
 * Records as text. The envelope is JSON with a fixed head, so that the body is a substring: it is
 * encoded once when it is put, and its checksum is verified before anything is parsed.
 *
 *     {"v":1,"r":<revision>,"o":<operation>,"c":"<checksum>","b":<body>}
 *
 * The checksum is the CRC-32 (ISO-HDLC, eight hex digits) over the UTF-8 of encoded key, head
 * without checksum, and body. It covers the key, so a record under a foreign key is noticed.
 */
import { crc32 } from "node:zlib";
import { StoreSerialization } from "../errors.js";
import { showKey } from "./keys.js";
import type { JsonValue, Key, OperationId, Revision, StoredRecord } from "./port.js";

/** The schema version of the envelope. */
export const RECORD_VERSION = 1;

/** A record whose text cannot be trusted, with its key as data, so that an audit can go on after it. */
export class UnreadableRecord extends StoreSerialization {
  constructor(
    readonly recordKey: Key,
    reason: string,
    cause?: unknown,
  ) {
    super(showKey(recordKey), reason, cause);
    this.name = "StoreSerialization";
  }
}

const VERSION_HEAD = '{"v":';
const HEAD = `${VERSION_HEAD}${RECORD_VERSION},"r":`;
const OPERATION = ',"o":';
const CHECKSUM = ',"c":"';
const BODY = '","b":';
const CHECKSUM_DIGITS = 8;

/** The head of every record of one commit, up to the checksum. */
export function recordHead(revision: Revision, operation: OperationId): string {
  return `${HEAD}${revision}${OPERATION}${JSON.stringify(operation)}`;
}

/** The text of a record: `head` from `recordHead`, `body` the JSON text of its value. */
export function encodeRecord(encodedKey: string, head: string, body: string): string {
  return `${head}${CHECKSUM}${checksum(encodedKey, head, body)}${BODY}${body}}`;
}

/**
 * Reads a record back.
 * @throws StoreSerialization an unknown schema version, a checksum that does not match, or text
 * that is no record; the key is shown, the content is not
 */
export function decodeRecord(key: Key, encodedKey: string, text: string): StoredRecord {
  if (!text.startsWith(HEAD)) throw foreign(key, text);
  const operationAt = text.indexOf(OPERATION, HEAD.length);
  const revision = Number(text.slice(HEAD.length, operationAt));
  const headEnd = stringEnd(text, operationAt + OPERATION.length);
  const bodyAt = headEnd + CHECKSUM.length + CHECKSUM_DIGITS + BODY.length;
  if (operationAt < 0 || headEnd < 0 || bodyAt >= text.length || !text.endsWith("}")) {
    throw new UnreadableRecord(key, "its envelope is not complete");
  }
  const head = text.slice(0, headEnd);
  const body = text.slice(bodyAt, -1);
  const sum = checksum(encodedKey, head, body);
  if (text.slice(headEnd, bodyAt) !== `${CHECKSUM}${sum}${BODY}`) {
    throw new UnreadableRecord(
      key,
      "its checksum does not match, so it was damaged or written under another key",
    );
  }
  try {
    const operation: OperationId = JSON.parse(head.slice(operationAt + OPERATION.length));
    const value: JsonValue = JSON.parse(body);
    if (!Number.isSafeInteger(revision)) throw new RangeError("the revision is not a whole number");
    return { key, revision, operation, value };
  } catch (error) {
    throw new UnreadableRecord(key, "its checksum matches but it is not JSON", error);
  }
}

function checksum(encodedKey: string, head: string, body: string): string {
  const sum = crc32(body, crc32(encodedKey + head));
  return sum.toString(16).padStart(CHECKSUM_DIGITS, "0");
}

/** The index after a JSON string that begins at `start`, or -1 where there is none. */
function stringEnd(text: string, start: number): number {
  if (text[start] !== '"') return -1;
  for (let at = text.indexOf('"', start + 1); at > 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
  return -1;
}

function foreign(key: Key, text: string): UnreadableRecord {
  const version = /^\{"v":(\d{1,9}),/.exec(text)?.[1];
  return version === undefined || Number(version) === RECORD_VERSION
    ? new UnreadableRecord(key, "it is not a record of holdfast")
    : new UnreadableRecord(key, `unsupported record schema version ${version}`);
}
