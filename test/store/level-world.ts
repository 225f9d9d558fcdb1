/** A LevelDB store on disk to be damaged: founded once, copied for each case. */
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { levelStore } from "../../src/store/level/level-store.js";
import type { StateStore } from "../../src/store/port.js";
import { listAll } from "../../src/testing/store/suite.js";

/** Rows of the sample, enough for a table of several blocks. */
const ROWS = 400;

export class Sample {
  readonly #root = mkdtempSync(join(tmpdir(), "holdfast-damage-"));
  readonly #sound = join(this.#root, "sound");
  /** Every row by its key, as a sound store lists them. */
  readonly rows = new Map<string, string>();
  #copies = 0;

  /** Two lives, so that the store has a table of the first and a log of the second. */
  static async found(): Promise<Sample> {
    const sample = new Sample();
    for (const life of [1, 2]) {
      const store = await levelStore(sample.#sound);
      for (let row = 0; row < ROWS; row += 1) {
        const transaction = await store.begin();
        transaction.put(["t", `${life}-${row}`], { life, row, text: `${row} `.repeat(40) });
        await transaction.commit();
      }
      if (life === 2) await sample.#note(store);
      await store.close();
    }
    return sample;
  }

  /** A copy of the store to do harm to. */
  copy(): Directory {
    this.#copies += 1;
    const path = join(this.#root, `copy-${this.#copies}`);
    cpSync(this.#sound, path, { recursive: true });
    return new Directory(path);
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  async #note(store: StateStore): Promise<void> {
    for (const { key, value } of await listAll(store, ["t"])) {
      this.rows.set(key.join("/"), JSON.stringify(value));
    }
  }
}

/** A store's directory as files. */
export class Directory {
  constructor(readonly path: string) {}

  file(name: string): string {
    return join(this.path, name);
  }

  /** The one file of LevelDB whose name matches. */
  level(pattern: RegExp): string {
    const names = readdirSync(this.file("level")).filter((name) => pattern.test(name));
    const [name] = names.filter((found) => statSync(this.file(`level/${found}`)).size > 0);
    if (name === undefined) throw new Error(`no file of LevelDB matches ${pattern}`);
    return this.file(`level/${name}`);
  }

  /** Name → digest of every file. */
  digests(): Readonly<Record<string, string>> {
    const names = readdirSync(this.path, { recursive: true, withFileTypes: true });
    return Object.fromEntries(
      names
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .sort()
        .map((path) => [path, createHash("sha256").update(readFileSync(path)).digest("hex")]),
    );
  }
}
