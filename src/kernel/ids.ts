/** Identifiers as a port, so that a seeded run gives the same ids again. */
import { randomFillSync } from "node:crypto";

export interface Ids {
  /** A UUID of version 7 (RFC 9562): unique, and in the order of the instants given. */
  next(epochMs: number): string;
}

const RANDOM_POOL_BYTES = 4_096;

/** Ids from the operating system's randomness. */
export function randomIds(): Ids {
  const pool = Buffer.alloc(RANDOM_POOL_BYTES);
  let used = RANDOM_POOL_BYTES;
  return uuid7((bytes) => {
    if (used + bytes > RANDOM_POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    used += bytes;
    return pool.subarray(used - bytes, used);
  });
}

/**
 * Ids whose random part comes from `random`. Within one millisecond, and when the clock steps back,
 * a counter in the 12 bits after the version keeps the order (RFC 9562, section 6.2, method 1).
 */
export function uuid7(random: (bytes: number) => Uint8Array): Ids {
  let lastMs = -1;
  let counter = 0;
  return {
    next(epochMs) {
      if (epochMs > lastMs) {
        lastMs = epochMs;
        counter = 0;
      } else {
        counter += 1;
        if (counter > 0xfff) {
          lastMs += 1;
          counter = 0;
        }
      }
      const time = lastMs.toString(16).padStart(12, "0");
      const tail = Buffer.from(random(8));
      tail[0] = ((tail[0] ?? 0) & 0x3f) | 0x80;
      const hex = tail.toString("hex");
      return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, "0")}-${hex.slice(0, 4)}-${hex.slice(4)}`;
    },
  };
}
