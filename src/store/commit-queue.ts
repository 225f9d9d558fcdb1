/**
 * Group commit: judges commits in the order of their arrival and joins them into batches. While one
 * batch is being written, every commit that arrives is judged at once and joins the next, so the
 * work on rows overlaps with the write. Each promise settles after its own batch is synced.
 */
import { type CorruptionError, StoreConflict, StoreFenced, StoreUnavailable } from "../errors.js";
import type { Backend, BackendBatch } from "./backend.js";
import { Epochs } from "./epochs.js";
import { type Identity, Revisions } from "./identity.js";
import { decodeKey, encodeKey, showKey } from "./keys.js";
import type { Key, Lease, OperationId, Revision } from "./port.js";
import { type Era, RecentWrites } from "./recent-writes.js";
import { decodeRecord, encodeRecord, recordHead } from "./record.js";

/** Rows of one batch; a single larger commit gets a batch of its own. */
export const BATCH_ROWS_MAX = 8_192;

/** Characters of record text in one batch, with the same exception. */
export const BATCH_CHARACTERS_MAX = 8 * 1_024 * 1_024;

/** Rows with which a batch is written at once, so that writing and judging overlap. */
const BATCH_ROWS_EAGER = 1_024;

/** A commit as it comes from a transaction. Keys are encoded. */
export interface Commit {
  readonly operation: OperationId;
  readonly era: Era;
  readonly lease: Lease | undefined;
  /** Each key read or expected, with the revision it had, 0 where it was absent. */
  readonly reads: ReadonlyMap<string, Revision>;
  /** The body of each record, `undefined` where it is removed. */
  readonly writes: ReadonlyMap<string, string | undefined>;
}

interface Submitted {
  readonly commit: Commit;
  /** Set for a claim, whose row is made when it is admitted. */
  readonly claims?: Claim;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Claim {
  readonly leaseKey: string;
  onEpoch(epoch: number): void;
}

interface OpenBatch {
  readonly number: number;
  readonly rows: BackendBatch;
  rowCount: number;
  characters: number;
  /** The revision of its first commit. */
  firstRevision: Revision | undefined;
  readonly members: Submitted[];
  /** Tells commits that were refused because of a write of this batch. */
  readonly refusals: (() => void)[];
}

/** Why a commit is not taken, and the revision of the write that stands against it, if one does. */
interface Refusal {
  readonly error: StoreFenced | StoreConflict;
  readonly movedBy?: Revision;
}

const NO_READS: ReadonlyMap<string, Revision> = new Map();
const NO_WRITES: ReadonlyMap<string, undefined> = new Map();

/** The key of the row that holds the epoch of an owner. */
function leaseKeyOf(owner: Key): string {
  return encodeKey(["lease", ...owner]);
}

export class CommitQueue {
  readonly #backend: Backend;
  readonly #recent = new RecentWrites();
  readonly #revisions: Revisions;
  readonly #epochs: Epochs;
  #batchCount = 0;
  #next: OpenBatch | undefined;
  #writing: OpenBatch | undefined;
  /** Commits that found the next batch full. */
  #waiting: Submitted[] = [];
  #isFlushScheduled = false;
  /** Commits and claims that somebody waits for. */
  #unsettled = 0;
  /** Why nothing is taken any more, in the words for one operation. */
  #failure: ((operation: string) => StoreUnavailable | CorruptionError) | undefined;
  #onIdle: (() => void) | undefined;

  constructor(backend: Backend, identity: Identity) {
    this.#backend = backend;
    this.#revisions = new Revisions(identity);
    this.#epochs = new Epochs((leaseKey) => this.#readEpoch(leaseKey));
  }

  /** A transaction begins; what it reads is fixed from here on. It must leave its era. */
  enter(): Era {
    const era = this.#recent.enter();
    // A write under way may become visible at any moment.
    if (this.#writing !== undefined) era.view ??= this.#backend.view();
    return era;
  }

  leave(era: Era): void {
    this.#recent.leave(era);
  }

  /** The text of a record as it was when the era's transactions began. */
  read(era: Era, key: string): Promise<string | undefined> {
    era.view ??= this.#backend.view();
    return era.view.get(key);
  }

  /**
   * @throws StoreUnavailable once a write has failed, since nothing can be trusted after it
   * @throws CorruptionError once damage was found
   */
  requireHealthy(operation: string): void {
    if (this.#failure !== undefined) throw this.#failure(operation);
  }

  /** Takes nothing from here on. What is on its way is still written, and answered as it ends. */
  condemn(damage: CorruptionError): void {
    this.#failure ??= () => damage;
    this.#endUnwritten();
  }

  /** Runs work that `drain` has to wait for. */
  async track<T>(work: () => Promise<T>): Promise<T> {
    this.#unsettled += 1;
    try {
      return await work();
    } finally {
      this.#unsettled -= 1;
      if (this.#unsettled === 0) this.#onIdle?.();
    }
  }

  /** Makes a commit durable. Leaves its era in every case. */
  async submit(commit: Commit): Promise<void> {
    const leaseKey = commit.lease && leaseKeyOf(commit.lease.owner);
    if (leaseKey !== undefined && !this.#epochs.has(leaseKey)) {
      try {
        await this.#epochs.load(leaseKey);
      } catch (error) {
        this.leave(commit.era);
        throw error;
      }
    }
    await new Promise<void>((resolve, reject) => this.#arrive({ commit, resolve, reject }));
  }

  /** Confirms a commit without writes. Leaves its era in every case. */
  async confirm(commit: Commit): Promise<void> {
    const refusal = await this.#judgeAlone(commit).finally(() => this.leave(commit.era));
    if (refusal === undefined) return;
    await new Promise<void>((_, reject) => this.#refuse(refusal, reject));
  }

  /** Raises the epoch of an owner, durably. */
  async claim(owner: Key, operation: OperationId): Promise<Lease> {
    const leaseKey = leaseKeyOf(owner);
    if (!this.#epochs.has(leaseKey)) await this.#epochs.load(leaseKey);
    let epoch = 0;
    const onEpoch = (raised: number) => {
      epoch = raised;
    };
    const commit: Commit = {
      operation,
      era: this.enter(),
      lease: undefined,
      reads: NO_READS,
      writes: NO_WRITES,
    };
    await new Promise<void>((resolve, reject) => {
      this.#arrive({ commit, claims: { leaseKey, onEpoch }, resolve, reject });
    });
    return { owner, epoch };
  }

  /** Resolves when every commit taken so far has settled. */
  async drain(): Promise<void> {
    if (this.#unsettled === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #arrive(submitted: Submitted): void {
    if (this.#failure !== undefined) {
      this.leave(submitted.commit.era);
      submitted.reject(this.#failure("commit"));
      return;
    }
    if (this.#waiting.length > 0 || !this.#admit(submitted)) this.#waiting.push(submitted);
    this.#scheduleFlush();
  }

  /** Judges a commit and adds its rows to the next batch. False where that batch is full. */
  #admit(submitted: Submitted): boolean {
    const { commit, claims } = submitted;
    const batch = this.#next;
    const rowCount = commit.writes.size;
    if (
      batch !== undefined &&
      (batch.rowCount + rowCount > BATCH_ROWS_MAX || batch.characters > BATCH_CHARACTERS_MAX)
    ) {
      return false;
    }
    const leaseKey = claims?.leaseKey ?? (commit.lease && leaseKeyOf(commit.lease.owner));
    if (leaseKey !== undefined && !this.#epochs.has(leaseKey)) {
      this.#arriveLater(submitted, leaseKey);
      return true;
    }
    const refusal = this.#judge(commit);
    this.leave(commit.era);
    if (refusal === undefined) {
      this.#addRows(submitted);
    } else {
      this.#refuse(refusal, submitted.reject);
    }
    return true;
  }

  /** The epoch was evicted while the commit waited for room. */
  #arriveLater(submitted: Submitted, leaseKey: string): void {
    this.#epochs.load(leaseKey).then(
      () => this.#arrive(submitted),
      (error) => {
        this.leave(submitted.commit.era);
        submitted.reject(error);
      },
    );
  }

  async #judgeAlone(commit: Commit): Promise<Refusal | undefined> {
    const leaseKey = commit.lease && leaseKeyOf(commit.lease.owner);
    while (leaseKey !== undefined && !this.#epochs.has(leaseKey)) {
      await this.#epochs.load(leaseKey);
    }
    this.requireHealthy("commit");
    return this.#judge(commit);
  }

  /** Says whether something that the commit relies on has moved. */
  #judge({ lease, reads, era }: Commit): Refusal | undefined {
    if (lease !== undefined) {
      const current = this.#epochs.get(leaseKeyOf(lease.owner)) ?? 0;
      if (current !== lease.epoch) {
        return { error: new StoreFenced(showKey(lease.owner), lease.epoch, current) };
      }
    }
    if (reads.size === 0) return undefined;
    if (era.isExpired) {
      const reason = "began too many writes ago to be judged";
      return { error: new StoreConflict("its transaction", reason) };
    }
    for (const [key, observed] of reads) {
      const movedBy = this.#recent.movedBy(key, observed);
      if (movedBy === undefined) continue;
      const reason = "has moved since it was read or expected";
      return { error: new StoreConflict(showKey(decodeKey(key)), reason), movedBy };
    }
    return undefined;
  }

  /**
   * Tells of a refusal once the write that stands against the commit is durable. A transaction that
   * began before could only be refused again, and trying without a pause would keep the write from
   * ever being reported.
   */
  #refuse({ error, movedBy = 0 }: Refusal, reject: (error: unknown) => void): void {
    const isIn = (batch: OpenBatch | undefined) => movedBy >= (batch?.firstRevision ?? Infinity);
    const batch = [this.#next, this.#writing].find(isIn);
    if (batch === undefined) {
      reject(error);
    } else {
      batch.refusals.push(() => reject(error));
    }
  }

  #addRows(submitted: Submitted): void {
    const batch = this.#next ?? this.#openBatch();
    this.#next = batch;
    batch.members.push(submitted);
    try {
      this.#encodeRows(batch, submitted);
    } catch (error) {
      // The batch may hold some rows of the commit, so it must not be written.
      this.#failure ??= (operation) => unusable(operation, error);
      this.#endUnwritten();
    }
  }

  #openBatch(): OpenBatch {
    this.#batchCount += 1;
    const number = this.#batchCount;
    const rows = this.#backend.batch();
    const empty = { rowCount: 0, characters: 0, firstRevision: undefined };
    return { number, rows, ...empty, members: [], refusals: [] };
  }

  #encodeRows(batch: OpenBatch, { commit, claims }: Submitted): void {
    const revision = this.#revisions.next((key, text) => batch.rows.put(key, text));
    batch.firstRevision ??= revision;
    const head = recordHead(revision, commit.operation);
    for (const [key, body] of commit.writes) this.#addRow(batch, key, body, head, revision);
    if (claims !== undefined) {
      const epoch = (this.#epochs.get(claims.leaseKey) ?? 0) + 1;
      this.#epochs.raise(claims.leaseKey, epoch, batch.number);
      this.#addRow(batch, claims.leaseKey, JSON.stringify({ epoch }), head, revision);
      claims.onEpoch(epoch);
    }
  }

  #addRow(
    batch: OpenBatch,
    key: string,
    body: string | undefined,
    head: string,
    revision: Revision,
  ): void {
    if (body === undefined) {
      batch.rows.delete(key);
    } else {
      const text = encodeRecord(key, head, body);
      batch.rows.put(key, text);
      batch.characters += text.length;
    }
    batch.rowCount += 1;
    this.#recent.note(batch.number, key, revision, body === undefined);
  }

  #scheduleFlush(): void {
    if (this.#writing !== undefined || this.#next === undefined) return;
    if (this.#next.rowCount >= BATCH_ROWS_EAGER) {
      this.#flush();
    } else if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      // A microtask later, so that commits of the same tick join.
      queueMicrotask(() => {
        this.#isFlushScheduled = false;
        if (this.#writing === undefined) this.#flush();
      });
    }
  }

  #flush(): void {
    const batch = this.#next;
    if (batch === undefined || this.#failure !== undefined) return;
    this.#next = undefined;
    const era = this.#recent.newestEra();
    if (era !== undefined && era.open > 0) era.view ??= this.#backend.view();
    this.#writing = batch;
    batch.rows.write().then(
      () => this.#onWritten(batch),
      (error) => this.#onFailed(batch, error),
    );
    this.#admitWaiting();
  }

  #onWritten(batch: OpenBatch): void {
    this.#writing = undefined;
    this.#recent.settle(batch.number);
    this.#epochs.settle(batch.number);
    // The next write begins before anybody is told, so that the disk is not left idle.
    this.#flush();
    for (const member of batch.members) member.resolve();
    for (const tell of batch.refusals) tell();
  }

  /**
   * Ends all use of the store. A failed write may have left part of a record in the log; rows
   * appended behind it would be dropped with it at the next recovery, acknowledged or not. Only a
   * new open can tell what is there.
   */
  #onFailed(batch: OpenBatch, cause: unknown): void {
    this.#failure ??= (operation) => unusable(operation, cause);
    this.#writing = undefined;
    for (const member of batch.members) member.reject(unusable("commit", cause));
    for (const tell of batch.refusals) tell();
    this.#endUnwritten();
  }

  /** Answers everything that no write has begun for. */
  #endUnwritten(): void {
    const next = this.#next;
    const waiting = this.#waiting;
    this.#next = undefined;
    this.#waiting = [];
    next?.rows.discard();
    for (const { commit } of waiting) this.leave(commit.era);
    for (const member of [...(next?.members ?? []), ...waiting]) {
      member.reject(this.#failure?.("commit"));
    }
    for (const tell of next?.refusals ?? []) tell();
  }

  #admitWaiting(): void {
    if (this.#waiting.length === 0) return;
    let admitted = 0;
    for (const submitted of this.#waiting) {
      if (!this.#admit(submitted)) break;
      admitted += 1;
    }
    this.#waiting = this.#waiting.slice(admitted);
  }

  async #readEpoch(leaseKey: string): Promise<number> {
    const text = await this.#backend.get(leaseKey);
    if (text === undefined) return 0;
    const { value } = decodeRecord(decodeKey(leaseKey), leaseKey, text);
    const epoch = typeof value === "object" && value !== null && "epoch" in value && value.epoch;
    return Number(epoch);
  }
}

function unusable(operation: string, cause: unknown): StoreUnavailable {
  const what = cause instanceof Error ? ` (${cause.message})` : "";
  return new StoreUnavailable(
    operation,
    `a write failed${what}, so the store must be closed and opened again`,
    cause,
  );
}
