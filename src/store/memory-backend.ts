/**
 * Rows in memory with versions, so that views pinned earlier keep what they saw. A version is
 * dropped as soon as no view can ask for it.
 */
import type { Backend, BackendBatch, BackendView, RangeRequest, Row } from "./backend.js";
import { compareEncoded } from "./keys.js";
import { SortedKeys } from "./sorted-keys.js";

/** One value of a row, from a write on until the next version. */
interface Version {
  readonly write: number;
  readonly text: string | undefined;
}

/** A row that got another version in `write`; earlier versions can go when no older view is open. */
interface Superseded {
  readonly write: number;
  readonly key: string;
}

export class MemoryBackend implements Backend {
  readonly #rows = new Map<string, Version[]>();
  readonly #keys = new SortedKeys();
  readonly #settle: () => Promise<void>;
  /** Open views per write that they pin, oldest first. */
  readonly #pins = new Map<number, number>();
  #superseded: Superseded[] = [];
  #lastWrite = 0;

  /** Each write waits for `settle` before it applies. */
  constructor(settle: () => Promise<void>, rows: Iterable<Row> = []) {
    this.#settle = settle;
    for (const [key, text] of rows) this.#apply(key, text);
  }

  async get(key: string): Promise<string | undefined> {
    return this.#read(key, this.#lastWrite);
  }

  async range({ gte, lt, limit }: RangeRequest): Promise<readonly Row[]> {
    const rows: Row[] = [];
    for (const key of this.#keys.from(gte)) {
      if (rows.length >= limit || (lt !== undefined && compareEncoded(key, lt) >= 0)) break;
      const text = this.#read(key, this.#lastWrite);
      if (text !== undefined) rows.push([key, text]);
    }
    return rows;
  }

  view(): BackendView {
    const write = this.#lastWrite;
    this.#pins.set(write, (this.#pins.get(write) ?? 0) + 1);
    let isOpen = true;
    return {
      get: async (key) => this.#read(key, write),
      release: () => {
        if (isOpen) this.#unpin(write);
        isOpen = false;
      },
    };
  }

  batch(): BackendBatch {
    const rows = new Map<string, string | undefined>();
    return {
      put: (key, text) => rows.set(key, text),
      delete: (key) => rows.set(key, undefined),
      write: async () => {
        await this.#settle();
        this.#lastWrite += 1;
        for (const [key, text] of rows) this.#apply(key, text);
        this.#prune();
      },
      discard: () => rows.clear(),
    };
  }

  async *rows(): AsyncIterable<Row> {
    const view = this.view();
    try {
      for (const key of [...this.#keys.from("")]) {
        const text = await view.get(key);
        if (text !== undefined) yield [key, text];
      }
    } finally {
      view.release();
    }
  }

  /** The rows stay: a store in memory has nowhere else to keep them. */
  async close(): Promise<void> {}

  #read(key: string, asOf: number): string | undefined {
    const versions = this.#rows.get(key);
    if (versions === undefined) return undefined;
    for (let index = versions.length - 1; index >= 0; index -= 1) {
      const version = versions[index];
      if (version !== undefined && version.write <= asOf) return version.text;
    }
    return undefined;
  }

  #apply(key: string, text: string | undefined): void {
    const version: Version = { write: this.#lastWrite, text };
    const versions = this.#rows.get(key);
    if (versions === undefined) {
      if (text === undefined) return;
      this.#rows.set(key, [version]);
      this.#keys.add(key);
      return;
    }
    versions.push(version);
    this.#superseded.push({ write: version.write, key });
  }

  #unpin(write: number): void {
    const left = (this.#pins.get(write) ?? 1) - 1;
    if (left > 0) {
      this.#pins.set(write, left);
      return;
    }
    this.#pins.delete(write);
    this.#prune();
  }

  /** Drops what only views older than the oldest open one could ask for. */
  #prune(): void {
    const oldest = this.#pins.keys().next().value ?? this.#lastWrite;
    let done = 0;
    for (const { write, key } of this.#superseded) {
      if (write > oldest) break;
      done += 1;
      this.#dropBefore(key, write);
    }
    if (done > 0) this.#superseded = this.#superseded.slice(done);
  }

  #dropBefore(key: string, write: number): void {
    const versions = this.#rows.get(key);
    if (versions === undefined) return;
    const kept = versions.filter((version) => version.write >= write);
    const [first] = kept;
    if (kept.length === 1 && first?.text === undefined) {
      this.#rows.delete(key);
      this.#keys.delete(key);
    } else {
      this.#rows.set(key, kept);
    }
  }
}
