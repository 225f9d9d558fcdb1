/**
 * A set of encoded keys in the order of their UTF-8 bytes: sorted chunks, so that an insertion
 * moves at most one chunk and not the whole set.
 */
import { compareEncoded } from "./keys.js";

const CHUNK_MAX = 512;

export class SortedKeys {
  #chunks: string[][] = [];

  add(key: string): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at];
    if (chunk === undefined) {
      this.#chunks.push([key]);
      return;
    }
    const place = lowerBound(chunk, key);
    if (chunk[place] === key) return;
    chunk.splice(place, 0, key);
    if (chunk.length > CHUNK_MAX) {
      this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK_MAX / 2));
    }
  }

  delete(key: string): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at];
    if (chunk === undefined) return;
    const place = lowerBound(chunk, key);
    if (chunk[place] !== key) return;
    chunk.splice(place, 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /** Keys from `gte` on, in order. The set must not change while it is walked. */
  *from(gte: string): Generator<string> {
    const at = this.#chunkOf(gte);
    for (let index = at; index < this.#chunks.length; index += 1) {
      const chunk = this.#chunks[index] ?? [];
      for (
        let place = index === at ? lowerBound(chunk, gte) : 0;
        place < chunk.length;
        place += 1
      ) {
        const key = chunk[place];
        if (key !== undefined) yield key;
      }
    }
  }

  /** The chunk where a key is or belongs: the last that does not begin after it. */
  #chunkOf(key: string): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const first = this.#chunks[middle]?.[0] ?? "";
      if (compareEncoded(first, key) <= 0) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

/** The first place whose key is not before `key`. */
function lowerBound(chunk: readonly string[], key: string): number {
  let low = 0;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareEncoded(chunk[middle] ?? "", key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
