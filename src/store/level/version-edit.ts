/**
 * Reads a MANIFEST (LevelDB's doc/impl.md): version edits that, taken together, say which tables
 * are live and from which log on rows are still to be replayed.
 */

/** What LevelDB would go by. */
export interface Version {
  readonly comparator: string | undefined;
  /** Logs from this number on are replayed. */
  readonly logNumber: number | undefined;
  readonly previousLogNumber: number;
  readonly nextFileNumber: number | undefined;
  /** Sequence number of the last write that was known. */
  readonly lastSequence: number | undefined;
  /** Live tables by number, with their size in bytes. */
  readonly tables: ReadonlyMap<number, number>;
}

/** The fields may be missing as long as edits are still to come. */
interface Draft {
  comparator: string | undefined;
  logNumber: number | undefined;
  previousLogNumber: number;
  nextFileNumber: number | undefined;
  lastSequence: number | undefined;
  /** `level/number` → number and size, since a move names a table on two levels. */
  readonly placed: Map<string, readonly [number, number]>;
}

const LEVELS = 7;

/**
 * Applies edits in their order.
 * @returns the version, or a sentence about what is wrong with the edit at an index
 */
export function readVersion(
  edits: readonly Uint8Array[],
): { readonly version: Version } | { readonly index: number; readonly what: string } {
  const draft: Draft = {
    comparator: undefined,
    logNumber: undefined,
    previousLogNumber: 0,
    nextFileNumber: undefined,
    lastSequence: undefined,
    placed: new Map(),
  };
  for (const [index, edit] of edits.entries()) {
    if (!applyEdit(draft, new EditReader(edit))) {
      return { index, what: "a version edit that cannot be read" };
    }
  }
  const { placed, ...rest } = draft;
  return { version: { ...rest, tables: new Map(placed.values()) } };
}

/** Deletions count before additions, whatever their order in the edit. */
function applyEdit(draft: Draft, edit: EditReader): boolean {
  const added: [string, readonly [number, number]][] = [];
  while (!edit.isAtEnd()) {
    switch (edit.number()) {
      case 1:
        draft.comparator = edit.text();
        break;
      case 2:
        draft.logNumber = edit.number();
        break;
      case 3:
        draft.nextFileNumber = edit.number();
        break;
      case 4:
        draft.lastSequence = edit.number();
        break;
      case 5:
        edit.level();
        edit.skipBytes();
        break;
      case 6:
        draft.placed.delete(`${edit.level()}/${edit.number()}`);
        break;
      case 7: {
        const level = edit.level();
        const number = edit.number();
        added.push([`${level}/${number}`, [number, edit.number()]]);
        edit.skipBytes();
        edit.skipBytes();
        break;
      }
      case 9:
        draft.previousLogNumber = edit.number();
        break;
      default:
        return false;
    }
    if (edit.hasFailed) return false;
  }
  for (const [place, table] of added) draft.placed.set(place, table);
  return true;
}

/** Varints and length-prefixed bytes. After a fault it gives zeros and says so. */
class EditReader {
  hasFailed = false;
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 10; count += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) break;
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    this.hasFailed = true;
    return 0;
  }

  level(): number {
    const level = this.number();
    if (level >= LEVELS) this.hasFailed = true;
    return level;
  }

  text(): string {
    return Buffer.from(this.#take()).toString("latin1");
  }

  skipBytes(): void {
    this.#take();
  }

  #take(): Uint8Array {
    const length = this.number();
    const from = this.#at;
    this.#at = from + length;
    if (this.#at > this.#bytes.length) this.hasFailed = true;
    return this.#bytes.subarray(from, this.#at);
  }
}
