/**
 * Bytes to numbered lines, within bounds: a line that is too long is reported and passed over
 * without being held, and one that is not UTF-8 is reported and not guessed at.
 */

/** A line as text, or what keeps it from being one. Lines are numbered from 1. */
export type Line =
  | { readonly number: number; readonly text: string }
  | { readonly number: number; readonly fault: string };

/** Bytes of one line, its end not counted. */
export const LINE_BYTES_MAX = 1_048_576;

const NEWLINE = 0x0a;

/** Gives every line that holds something else than blanks. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  bytesMax = LINE_BYTES_MAX,
): AsyncGenerator<Line> {
  const line = new LineBuffer(bytesMax);
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      line.add(chunk.subarray(from, at));
      const taken = line.take();
      if (taken !== undefined) yield taken;
      from = at + 1;
    }
    line.add(chunk.subarray(from));
  }
  const last = line.take();
  if (last !== undefined) yield last;
}

class LineBuffer {
  readonly #bytesMax: number;
  #parts: Uint8Array[] = [];
  #size = 0;
  #number = 1;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#size += part.length;
    if (this.#size > this.#bytesMax) this.#parts = [];
    else this.#parts.push(part);
  }

  /** The line up to here; `undefined` where it is blank. */
  take(): Line | undefined {
    const number = this.#number;
    const parts = this.#parts;
    const size = this.#size;
    this.#number += 1;
    this.#parts = [];
    this.#size = 0;
    if (size > this.#bytesMax) {
      return { number, fault: `the line is longer than ${this.#bytesMax} bytes` };
    }
    const text = decode(parts, size);
    if (text === undefined) return { number, fault: "the line is not valid UTF-8" };
    // A mark of byte order may stand before the first line.
    const content = number === 1 ? text.replace(/^\ufeff/, "") : text;
    return content.trim() === "" ? undefined : { number, text: content.replace(/\r$/, "") };
  }
}

function decode(parts: readonly Uint8Array[], size: number): string | undefined {
  const bytes =
    parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, size);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
