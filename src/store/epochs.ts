/**
 * The current epochs of owners, for fencing. A bounded cache over the lease rows: a claim raises an
 * epoch here when it is admitted, so commits queued behind it are fenced before it is durable.
 */

/** Owners whose epoch is kept in memory. Others are read again when they are needed. */
export const EPOCHS_MAX = 100_000;

interface Entry {
  readonly epoch: number;
  /** The batch that stores this epoch. Until it is durable the row still shows an older one. */
  readonly batch: number;
}

export class Epochs {
  readonly #entries = new Map<string, Entry>();
  readonly #loads = new Map<string, Promise<void>>();
  readonly #read: (leaseKey: string) => Promise<number>;
  readonly #max: number;
  #claims = 0;
  #durableBatch = 0;

  /** `read` gives the durable epoch of a lease row, 0 where there is none. */
  constructor(read: (leaseKey: string) => Promise<number>, max = EPOCHS_MAX) {
    this.#read = read;
    this.#max = max;
  }

  /** The current epoch, or `undefined` where it has to be loaded first. */
  get(leaseKey: string): number | undefined {
    const entry = this.#entries.get(leaseKey);
    if (entry === undefined) return undefined;
    // Moved to the end, so that the first entry is always the one longest unused.
    this.#entries.delete(leaseKey);
    this.#entries.set(leaseKey, entry);
    return entry.epoch;
  }

  has(leaseKey: string): boolean {
    return this.#entries.has(leaseKey);
  }

  /** A claim was admitted to `batch`. */
  raise(leaseKey: string, epoch: number, batch: number): void {
    this.#claims += 1;
    this.#set(leaseKey, { epoch, batch });
  }

  settle(batch: number): void {
    this.#durableBatch = batch;
  }

  /** Makes `get` answer. Waiters for one owner share one read. */
  load(leaseKey: string): Promise<void> {
    let loading = this.#loads.get(leaseKey);
    if (loading === undefined) {
      loading = this.#load(leaseKey).finally(() => this.#loads.delete(leaseKey));
      this.#loads.set(leaseKey, loading);
    }
    return loading;
  }

  async #load(leaseKey: string): Promise<void> {
    while (!this.#entries.has(leaseKey)) {
      const claimsBefore = this.#claims;
      const epoch = await this.#read(leaseKey);
      // A claim of this owner may have come, become durable and been evicted during the read.
      if (this.#claims !== claimsBefore || this.#entries.has(leaseKey)) continue;
      this.#set(leaseKey, { epoch, batch: 0 });
    }
  }

  #set(leaseKey: string, entry: Entry): void {
    this.#entries.delete(leaseKey);
    this.#entries.set(leaseKey, entry);
    for (const [oldKey, old] of this.#entries) {
      if (this.#entries.size <= this.#max) break;
      // An epoch that is not durable yet cannot be read again, so it stays.
      if (old.batch <= this.#durableBatch) this.#entries.delete(oldKey);
    }
  }
}
