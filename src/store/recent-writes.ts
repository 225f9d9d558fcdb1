/**
 * The memory behind conflict checks: which keys were written since the oldest open transaction
 * began, and by which revision. A write counts from the moment its commit is admitted, so commits
 * behind it see it before it is durable.
 */
import type { BackendView } from "./backend.js";
import type { Revision } from "./port.js";

/** Keys remembered at once. Beyond it the oldest transactions can only conflict. */
export const RECENT_KEYS_MAX = 262_144;

/**
 * The transactions that began between the ends of two batches. They may share one read view: what
 * was acknowledged before one of them began is the same for all. They need every later write.
 */
export interface Era {
  /** The last batch that was visible when these transactions began. */
  readonly batch: number;
  /** Transactions that may still read or have to be judged. */
  open: number;
  /** Set at the latest before the first write that could change what they see. */
  view: BackendView | undefined;
  /** Writes these transactions would have to be checked against were forgotten. */
  isExpired: boolean;
}

interface BatchKeys {
  readonly batch: number;
  readonly keys: string[];
  lastRevision: Revision;
}

export class RecentWrites {
  /** Encoded key → its last revision, negative where that revision removed it. */
  readonly #revisions = new Map<string, number>();
  /** Oldest first; the newest may still be filled. */
  #batches: BatchKeys[] = [];
  /** Oldest first; only the first is sure to be needed. */
  #eras: Era[] = [];
  #visibleBatch = 0;

  /** A transaction begins now. It must `leave` its era once it needs no more checks. */
  enter(): Era {
    const newest = this.newestEra();
    if (newest !== undefined) {
      newest.open += 1;
      return newest;
    }
    const era: Era = { batch: this.#visibleBatch, open: 1, view: undefined, isExpired: false };
    this.#eras.push(era);
    return era;
  }

  leave(era: Era): void {
    era.open -= 1;
    if (era.open > 0) return;
    era.view?.release();
    era.view = undefined;
  }

  /** The era that a transaction would enter now, if there is one. */
  newestEra(): Era | undefined {
    const newest = this.#eras.at(-1);
    return newest?.batch === this.#visibleBatch ? newest : undefined;
  }

  /**
   * The commit that gave a key another revision than the observed one (0 for absence), as the
   * revision of that commit, a removal's too. `undefined` where the observation still holds.
   */
  movedBy(key: string, observed: Revision): Revision | undefined {
    const revision = this.#revisions.get(key) ?? observed;
    return Math.max(revision, 0) === observed ? undefined : Math.abs(revision);
  }

  /** Notes a write of an admitted commit. Batches and revisions come in order. */
  note(batch: number, key: string, revision: Revision, isDelete: boolean): void {
    let newest = this.#batches.at(-1);
    if (newest === undefined || newest.batch !== batch) {
      newest = { batch, keys: [], lastRevision: revision };
      this.#batches.push(newest);
    }
    newest.keys.push(key);
    newest.lastRevision = revision;
    this.#revisions.set(key, isDelete ? -revision : revision);
  }

  /** A batch is durable and visible: forgets what no open transaction needs. */
  settle(batch: number): void {
    this.#visibleBatch = batch;
    this.#forget();
    while (this.#revisions.size > RECENT_KEYS_MAX && (this.#eras[0]?.batch ?? batch) < batch) {
      const oldest = this.#eras.shift();
      if (oldest !== undefined) oldest.isExpired = true;
      this.#forget();
    }
  }

  /** Keys remembered now. */
  get size(): number {
    return this.#revisions.size;
  }

  #forget(): void {
    const firstOpen = this.#eras.findIndex((era) => era.open > 0);
    this.#eras = firstOpen < 0 ? [] : this.#eras.slice(firstOpen);
    const needless = this.#eras[0]?.batch ?? this.#visibleBatch;
    const firstNeeded = this.#batches.findIndex(({ batch }) => batch > needless);
    if (firstNeeded < 0) {
      this.#revisions.clear();
      this.#batches = [];
      return;
    }
    for (const { keys, lastRevision } of this.#batches.slice(0, firstNeeded)) {
      for (const key of keys) {
        const revision = this.#revisions.get(key);
        // A later batch may have written the key again.
        if (revision !== undefined && Math.abs(revision) <= lastRevision) {
          this.#revisions.delete(key);
        }
      }
    }
    this.#batches = this.#batches.slice(firstNeeded);
  }
}
