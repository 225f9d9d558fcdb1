/**
 * LevelDB as a backend of the transaction engine: UTF-8 keys and values, synced chained batches,
 * explicit snapshots. It maps LevelDB's errors and decides nothing.
 */
import type { Level } from "level";
import { StoreSerialization, StoreUnavailable } from "../../errors.js";
import type { Backend, BackendBatch, BackendView, RangeRequest, Row } from "../backend.js";
import { decodeKey, showKey } from "../keys.js";

/** Bytes that one step of an iterator may hold; the default of 16 KiB makes many small steps. */
const STEP_BYTES = 1_024 * 1_024;

/** Rows that one step of a whole scan asks for. */
const SCAN_ROWS = 1_000;

const TEXT = { keyEncoding: "utf8", valueEncoding: "utf8" } as const;

export class LevelBackend implements Backend {
  readonly #db: Level<string, string>;
  readonly #onClosed: () => Promise<void>;

  /** The database must be open. The backend owns it from here on. */
  constructor(db: Level<string, string>, onClosed: () => Promise<void> = async () => {}) {
    this.#db = db;
    this.#onClosed = onClosed;
  }

  /**
   * Reads without a hop through the thread pool: a block that is cached, in memory or in the page
   * cache takes some 6 µs, a hop alone 30.
   */
  async get(key: string): Promise<string | undefined> {
    try {
      return this.#db.getSync(key);
    } catch (error) {
      throw readFailure(key, error);
    }
  }

  async range({ gte, lt, limit }: RangeRequest): Promise<readonly Row[]> {
    const bounds = lt === undefined ? { gte } : { gte, lt };
    try {
      return await this.#db.iterator({ ...bounds, limit, highWaterMarkBytes: STEP_BYTES }).all();
    } catch (error) {
      throw readFailure(gte, error);
    }
  }

  view(): BackendView {
    const snapshot = this.#db.snapshot();
    const options = { ...TEXT, snapshot };
    return {
      get: async (key) => {
        try {
          return this.#db.getSync(key, options);
        } catch (error) {
          throw readFailure(key, error);
        }
      },
      // LevelDB lets go at once; the promise only says so, and nobody acts on it.
      release: () => void snapshot.close().catch(() => {}),
    };
  }

  batch(): BackendBatch {
    const batch = this.#db.batch();
    return {
      put: (key, text) => void batch.put(key, text),
      delete: (key) => void batch.del(key),
      write: () => batch.write({ sync: true }),
      discard: () => void batch.close().catch(() => {}),
    };
  }

  async *rows(): AsyncIterable<Row> {
    const iterator = this.#db.iterator({ highWaterMarkBytes: STEP_BYTES });
    try {
      for (;;) {
        const rows = await iterator.nextv(SCAN_ROWS);
        if (rows.length === 0) return;
        yield* rows;
      }
    } catch (error) {
      throw readFailure("", error);
    } finally {
      await iterator.close();
    }
  }

  async close(): Promise<void> {
    await this.#db.close();
    await this.#onClosed();
  }
}

/** The code of an abstract-level error, of its cause where it only says that opening failed. */
export function levelCode(error: unknown): string | undefined {
  const { code, cause } = error instanceof Error ? (error as CodedError) : {};
  if (code === "LEVEL_DATABASE_NOT_OPEN" && cause !== undefined) return levelCode(cause);
  return code;
}

interface CodedError extends Error {
  readonly code?: string;
}

function readFailure(key: string, error: unknown): Error {
  if (levelCode(error) === "LEVEL_CORRUPTION") {
    return new StoreSerialization(shown(key), "LevelDB reports damage in its files", error);
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new StoreUnavailable("read", reason, error);
}

function shown(key: string): string {
  try {
    return showKey(decodeKey(key));
  } catch {
    // The start of a range is no whole key.
    return "of a page";
  }
}
