/**
 * Reads LevelDB's table files (its doc/table_format.md) as far as an audit needs: the footer, the
 * handles in index blocks, and the checksum behind each block. LevelDB does not verify blocks when
 * it reads them here, so a damaged index or filter would hide records in silence.
 */
import { readSync } from "node:fs";
import { crc32c, unmaskCrc } from "./crc32c.js";
import type { LogDamage } from "./log-format.js";
import { unsnap } from "./snappy.js";

const FOOTER_BYTES = 48;
const TRAILER_BYTES = 5;
const MAGIC = "57fb808b247547db";

interface Handle {
  readonly offset: number;
  readonly size: number;
}

/** An open table: descriptor and size in bytes. */
export interface TableFile {
  readonly fd: number;
  readonly size: number;
}

/**
 * Verifies what decides whether a record is found: footer, index, meta index and filters. With
 * `withData` every block of records as well.
 */
export function findTableDamage(file: TableFile, withData: boolean): LogDamage | undefined {
  const footer = readAt(file, file.size - FOOTER_BYTES, FOOTER_BYTES);
  const footerAt = Math.max(0, file.size - FOOTER_BYTES);
  if (footer === undefined || Buffer.from(footer.subarray(40)).toString("hex") !== MAGIC) {
    return { offset: footerAt, what: "a table without its end mark" };
  }
  const [meta, index] = readHandles(footer, 2);
  if (meta === undefined || index === undefined) {
    return { offset: footerAt, what: "a table whose footer cannot be read" };
  }
  const roots: readonly [Handle, boolean][] = [
    [meta, true],
    [index, withData],
  ];
  for (const [root, withChildren] of roots) {
    const block = readBlock(file, root);
    if ("what" in block) return block;
    if (!withChildren) continue;
    const children = readChildren(block);
    if (children === undefined) return { offset: root.offset, what: "an index without order" };
    for (const child of children) {
      const content = readBlock(file, child);
      if ("what" in content) return content;
    }
  }
  return undefined;
}

function readBlock(file: TableFile, { offset, size }: Handle): Uint8Array | LogDamage {
  const bytes = readAt(file, offset, size + TRAILER_BYTES);
  if (bytes === undefined) return { offset, what: "a block beyond the end of its table" };
  const stored = new DataView(bytes.buffer, bytes.byteOffset + size + 1, 4).getUint32(0, true);
  if (crc32c(bytes.subarray(0, size + 1)) !== unmaskCrc(stored)) {
    return { offset, what: "a block with a wrong checksum" };
  }
  const content = bytes.subarray(0, size);
  const plain = bytes[size] === 0 ? content : bytes[size] === 1 ? unsnap(content) : undefined;
  return plain ?? { offset, what: "a block that cannot be decompressed" };
}

/** The handles that the entries of an index block hold as values. */
function readChildren(block: Uint8Array): readonly Handle[] | undefined {
  if (block.length < 4) return undefined;
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const end = block.length - 4 * (1 + view.getUint32(block.length - 4, true));
  const handles: Handle[] = [];
  let at = 0;
  while (at < end) {
    const lengths = readVarints(block, at, 3);
    if (lengths === undefined) return undefined;
    const [, unshared = 0, valueLength = 0] = lengths.values;
    const valueAt = lengths.end + unshared;
    at = valueAt + valueLength;
    const [handle] = at <= end ? readHandles(block.subarray(valueAt, at), 1) : [];
    if (handle === undefined) return undefined;
    handles.push(handle);
  }
  return at === end ? handles : undefined;
}

function readHandles(bytes: Uint8Array, count: number): readonly Handle[] {
  const { values = [] } = readVarints(bytes, 0, 2 * count) ?? {};
  const handles: Handle[] = [];
  for (let index = 0; index + 1 < values.length; index += 2) {
    handles.push({ offset: values[index] ?? 0, size: values[index + 1] ?? 0 });
  }
  return handles;
}

function readVarints(
  bytes: Uint8Array,
  start: number,
  count: number,
): { readonly values: readonly number[]; readonly end: number } | undefined {
  const values: number[] = [];
  let value = 0;
  let scale = 1;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte >= 0x80) continue;
    values.push(value);
    if (values.length === count) return { values, end: at + 1 };
    value = 0;
    scale = 1;
  }
  return undefined;
}

function readAt({ fd, size }: TableFile, offset: number, length: number): Uint8Array | undefined {
  if (offset < 0 || offset + length > size) return undefined;
  const bytes = new Uint8Array(length);
  return readSync(fd, bytes, 0, length, offset) === length ? bytes : undefined;
}
