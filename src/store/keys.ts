/**
 * Keys as text: an injective encoding whose byte order is path order, so that any ordered store of
 * strings or bytes can hold records. Each segment is written with NUL as U+0001 U+0001 and U+0001 as
 * U+0001 U+0002, and ends with NUL. It checks what a key may be; it knows nothing of what keys mean.
 */
import { assert, describeKind, StoreSerialization, show, ValidationError } from "../errors.js";
import { ID_BYTES_MAX } from "../limits.js";
import type { Key } from "./port.js";

/** Segments of one key. Part of the stored format, so it is not configurable. */
export const KEY_SEGMENTS_MAX = 16;

/** A half-open range of encoded keys. Without `lt` it runs to the end. */
export interface EncodedRange {
  readonly gte: string;
  readonly lt?: string | undefined;
}

const END = "\u0000";
const ESCAPE = "\u0001";
const NEEDS_ESCAPE = new RegExp(`[${END}${ESCAPE}]`, "g");
const ESCAPED = new RegExp(`${ESCAPE}([\u0001\u0002])`, "g");

/**
 * Checks that a value is a key: 1 to 16 segments, each of 1 to 512 bytes of well-formed UTF-8. The
 * empty path is a key only where `allowEmpty` says so, as the prefix of everything.
 * @throws ValidationError naming the segment at fault
 */
export function checkKey(key: unknown, subject = "key", allowEmpty = false): asserts key is Key {
  if (!Array.isArray(key)) refuse(subject, "", describeKind(key), "an array of segments");
  if (key.length > KEY_SEGMENTS_MAX || (key.length === 0 && !allowEmpty)) {
    refuse(subject, "", `${key.length} segments long`, `1 to ${KEY_SEGMENTS_MAX} segments`);
  }
  for (let index = 0; index < key.length; index += 1) {
    const segment: unknown = key[index];
    const expected = `a string of 1 to ${ID_BYTES_MAX} bytes`;
    if (typeof segment !== "string") refuse(subject, `/${index}`, describeKind(segment), expected);
    if (segment === "") refuse(subject, `/${index}`, "an empty string", expected);
    if (!segment.isWellFormed()) {
      refuse(subject, `/${index}`, "a string with a lone surrogate", "well-formed Unicode");
    }
    // No code unit takes more than three bytes, so most segments need no count.
    if (segment.length * 3 > ID_BYTES_MAX && Buffer.byteLength(segment) > ID_BYTES_MAX) {
      refuse(subject, `/${index}`, `${Buffer.byteLength(segment)} bytes long`, expected);
    }
  }
}

/** Text whose order by UTF-8 bytes is path order. The key must have passed `checkKey`. */
export function encodeKey(key: Key): string {
  let text = "";
  for (const segment of key) text += escapeSegment(segment) + END;
  return text;
}

/**
 * The key that an encoded text stands for.
 * @throws StoreSerialization the text is not an encoded key
 */
export function decodeKey(text: string): Key {
  if (!text.endsWith(END)) throw foreignKey(text);
  const parts = text.slice(0, -1).split(END);
  const key = text.includes(ESCAPE) ? parts.map((part) => unescapeSegment(part, text)) : parts;
  try {
    checkKey(key);
  } catch (error) {
    throw foreignKey(text, error);
  }
  return key;
}

/** The range of all keys strictly below a path; the empty path covers everything. */
export function prefixRange(prefix: Key): EncodedRange {
  const text = encodeKey(prefix);
  // Every key below goes on with a segment, and none of those begins with NUL.
  if (text === "") return { gte: ESCAPE };
  return { gte: text + ESCAPE, lt: text.slice(0, -1) + ESCAPE };
}

/** The first text after an encoded key, in the order of `compareEncoded`. */
export function afterEncoded(text: string): string {
  return text + END;
}

/**
 * Orders texts by their UTF-8 bytes. JavaScript orders by UTF-16 units, which puts surrogates, and
 * so everything beyond U+FFFF, before U+E000 to U+FFFF.
 */
export function compareEncoded(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const x = a.charCodeAt(index);
    const y = b.charCodeAt(index);
    if (x !== y) return utf8Rank(x) - utf8Rank(y);
  }
  return a.length - b.length;
}

/** A count as a segment whose text order is its number order: 20 digits. */
export function sequenceSegment(sequence: number): string {
  assert(Number.isSafeInteger(sequence) && sequence >= 0, "a sequence is a whole number from 0");
  return String(sequence).padStart(20, "0");
}

/** A key as it is shown in messages: plain segments as they are, others quoted, joined by slashes. */
export function showKey(key: Key): string {
  if (key.length === 0) return "(the empty path)";
  return key.map((part) => (/^[\w.@+-]{1,80}$/.test(part) ? part : show(part))).join("/");
}

function utf8Rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

function escapeSegment(segment: string): string {
  if (!segment.includes(END) && !segment.includes(ESCAPE)) return segment;
  return segment.replace(NEEDS_ESCAPE, (unit) => ESCAPE + (unit === END ? "\u0001" : "\u0002"));
}

function unescapeSegment(text: string, whole: string): string {
  const segment = text.replace(ESCAPED, (_, unit) => (unit === "\u0001" ? END : ESCAPE));
  if (escapeSegment(segment) !== text) throw foreignKey(whole);
  return segment;
}

function foreignKey(text: string, cause?: unknown): StoreSerialization {
  return new StoreSerialization(show(text), "its key is not one of holdfast", cause);
}

function refuse(subject: string, path: string, found: string, expected: string): never {
  throw new ValidationError(subject, [{ path, found, expected }]);
}
