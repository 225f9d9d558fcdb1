/**
 * Reads LevelDB's log format (its doc/log_format.md), in which write-ahead logs and MANIFESTs are
 * kept: blocks of 32 KiB, records in fragments with a masked CRC-32C, a length and a type each.
 * LevelDB itself skips what it cannot read; this reader tells a write cut short from damage.
 */
import { crc32c, unmaskCrc } from "./crc32c.js";

const BLOCK_BYTES = 32_768;
const HEADER_BYTES = 7;

/** Fragment types; what lies between first and last is a middle. */
const FULL = 1;
const FIRST = 2;
const LAST = 4;

interface LogRecord {
  /** Where its first fragment begins. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export interface LogScan {
  readonly records: readonly LogRecord[];
  /** True where the last write did not reach the file whole: a process or machine stopped in it. */
  readonly isTorn: boolean;
  readonly damage: LogDamage | undefined;
}

export interface LogDamage {
  readonly offset: number;
  readonly what: string;
}

interface Fragment {
  readonly offset: number;
  readonly type: number;
  readonly bytes: Uint8Array;
}

/** Reads a whole log. Stops at the first damage; a torn tail is not damage. */
export function scanLog(bytes: Uint8Array): LogScan {
  const records: LogRecord[] = [];
  let begun: Fragment[] = [];
  let at = 0;
  const end = (isTorn: boolean, damage?: LogDamage): LogScan => ({ records, isTorn, damage });
  for (;;) {
    const left = BLOCK_BYTES - (at % BLOCK_BYTES);
    // Too little room for a header: the writer filled it up and nobody reads it.
    if (left < HEADER_BYTES) at += left;
    if (at >= bytes.length) return end(begun.length > 0);
    const read = readFragment(bytes, at);
    if (read === "torn") return end(true);
    if ("what" in read) return end(false, read);
    const { type } = read;
    const isStart = type === FULL || type === FIRST;
    if (isStart === begun.length > 0) {
      const what = isStart ? "a record begins inside another" : "a record goes on without a start";
      return end(false, { offset: at, what });
    }
    begun.push(read);
    if (type === FULL || type === LAST) {
      records.push(joined(begun));
      begun = [];
    }
    at += HEADER_BYTES + read.bytes.length;
  }
}

function readFragment(bytes: Uint8Array, offset: number): Fragment | LogDamage | "torn" {
  const available = bytes.length - offset - HEADER_BYTES;
  if (available < 0) return "torn";
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, HEADER_BYTES);
  const expected = unmaskCrc(view.getUint32(0, true));
  const length = view.getUint16(4, true);
  const type = view.getUint8(6);
  if (type === 0 && length === 0) {
    // A file that grew before its data came reads as zeros up to its end.
    const isZero = bytes.subarray(offset).every((byte) => byte === 0);
    return isZero ? "torn" : { offset, what: "zeros where a record was" };
  }
  const room = BLOCK_BYTES - (offset % BLOCK_BYTES) - HEADER_BYTES;
  if (length > room) return { offset, what: "a record longer than its block" };
  const from = offset + HEADER_BYTES - 1;
  if (length > available) {
    // Cut short, unless all of it is there and only its length is wrong.
    return hasPrefixWithCrc(bytes.subarray(from), expected)
      ? { offset, what: "a record with a damaged length" }
      : "torn";
  }
  const content = bytes.subarray(from, offset + HEADER_BYTES + length);
  if (crc32c(content) !== expected) return { offset, what: "a record with a wrong checksum" };
  if (type < FULL || type > LAST) return { offset, what: `a record of unknown type ${type}` };
  return { offset, type, bytes: content.subarray(1) };
}

/** Whether some beginning of `bytes`, type and content, has this checksum. */
function hasPrefixWithCrc(bytes: Uint8Array, expected: number): boolean {
  let crc = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    crc = crc32c(bytes.subarray(at, at + 1), crc);
    if (crc === expected) return true;
  }
  return false;
}

function joined(fragments: readonly Fragment[]): LogRecord {
  const [first] = fragments;
  const offset = first?.offset ?? 0;
  const bytes =
    fragments.length === 1 && first !== undefined
      ? first.bytes
      : Buffer.concat(fragments.map((fragment) => fragment.bytes));
  return { offset, bytes };
}
