/**
 * Decompresses Snappy's raw format (its format_description.txt), in which LevelDB keeps blocks of
 * tables. Only for audits; LevelDB reads its blocks itself.
 */

/** The content, or `undefined` where the bytes are not valid. */
export function unsnap(bytes: Uint8Array): Uint8Array | undefined {
  const size = readVarint(bytes);
  if (size === undefined || size.value > 64 * 1_024 * 1_024) return undefined;
  const output = new Uint8Array(size.value);
  let from = size.end;
  let to = 0;
  while (from < bytes.length) {
    const tag = bytes[from] ?? 0;
    const kind = tag & 3;
    if (kind === 0) {
      const short = tag >>> 2;
      const extra = short < 60 ? 0 : short - 59;
      const length = 1 + (extra === 0 ? short : readFixed(bytes, from + 1, extra));
      const start = from + 1 + extra;
      from = start + length;
      if (from > bytes.length || to + length > output.length) return undefined;
      output.set(bytes.subarray(start, from), to);
      to += length;
      continue;
    }
    const extra = kind === 3 ? 4 : kind;
    const length = kind === 1 ? 4 + ((tag >>> 2) & 7) : 1 + (tag >>> 2);
    const low = readFixed(bytes, from + 1, extra);
    const distance = kind === 1 ? ((tag >>> 5) << 8) + low : low;
    from += 1 + extra;
    if (from > bytes.length || distance === 0 || distance > to) return undefined;
    if (to + length > output.length) return undefined;
    // Byte by byte, since a copy may reach into what it writes.
    for (const end = to + length; to < end; to += 1) output[to] = output[to - distance] ?? 0;
  }
  return to === output.length ? output : undefined;
}

function readVarint(bytes: Uint8Array): { value: number; end: number } | undefined {
  let value = 0;
  for (let at = 0; at < 5; at += 1) {
    const byte = bytes[at];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * at);
    if (byte < 0x80) return { value, end: at + 1 };
  }
  return undefined;
}

function readFixed(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let index = 0; index < count; index += 1) value += (bytes[at + index] ?? 0) * 256 ** index;
  return value;
}
