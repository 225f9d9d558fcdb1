/** LevelDB opens damaged files in silence; this store refuses them, names what it found, and writes nothing. */
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename } from "node:path";
import fc from "fast-check";
import { Level } from "level";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  CorruptionError,
  isHoldfastError,
  StoreSerialization,
  StoreUnavailable,
} from "../../src/errors.js";
import { encodeKey } from "../../src/store/keys.js";
import { type LevelStore, levelStore } from "../../src/store/level/level-store.js";
import { auditRecords } from "../../src/store/verify.js";
import { listAll } from "../../src/testing/store/suite.js";
import { type Directory, Sample } from "./level-world.js";

const LOG = /^\d+\.log$/;
const TABLE = /^\d+\.ldb$/;
const MANIFEST = /^MANIFEST-/;

let sample: Sample;
beforeAll(async () => {
  sample = await Sample.found();
});
afterAll(() => sample.remove());

function flip(path: string, at: number, bit = 2): void {
  const bytes = readFileSync(path);
  const index = Math.min(bytes.length - 1, Math.floor(at * bytes.length));
  bytes[index] = (bytes[index] ?? 0) ^ (1 << bit);
  writeFileSync(path, bytes);
}

function editIdentity(directory: Directory, change: Readonly<Record<string, unknown>>): void {
  const path = directory.file("holdfast.json");
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
}

interface Damage {
  /** Does the harm, and gives the name of the file that the refusal has to name. */
  harm(directory: Directory): string;
  readonly found: RegExp;
  /** LevelDB has to be opened to see it, which makes a table of its log; no row is touched. */
  readonly isSeenByRow?: boolean;
}

const damages: Readonly<Record<string, Damage>> = {
  "CURRENT is missing": {
    harm: (directory) => {
      unlinkSync(directory.level(/^CURRENT$/));
      return "CURRENT";
    },
    found: /missing although/,
  },
  "CURRENT names a MANIFEST that is missing": {
    harm: (directory) => {
      writeFileSync(directory.level(/^CURRENT$/), "MANIFEST-999999\n");
      return "CURRENT";
    },
    found: /MANIFEST-999999, which is missing/,
  },
  "CURRENT is something else": {
    harm: (directory) => {
      writeFileSync(directory.level(/^CURRENT$/), "../../etc/passwd\n");
      return "CURRENT";
    },
    found: /does not name a MANIFEST/,
  },
  "a byte of the log is flipped": {
    harm: (directory) => {
      const path = directory.level(LOG);
      flip(path, 0.5);
      return basename(path);
    },
    found: /offset \d+/,
  },
  "the log is gone": {
    harm: (directory) => {
      const path = directory.level(LOG);
      unlinkSync(path);
      return basename(path);
    },
    found: /missing although/,
  },
  "the MANIFEST is cut to nothing": {
    harm: (directory) => {
      const path = directory.level(MANIFEST);
      truncateSync(path, 0);
      return basename(path);
    },
    found: /names no known order of keys/,
  },
  "a byte of the MANIFEST is flipped": {
    harm: (directory) => {
      const path = directory.level(MANIFEST);
      flip(path, 0.3);
      return basename(path);
    },
    found: /offset \d+/,
  },
  "a table is gone": {
    harm: (directory) => {
      const path = directory.level(TABLE);
      unlinkSync(path);
      return basename(path);
    },
    found: /missing although the MANIFEST names it/,
  },
  "a table is cut short": {
    harm: (directory) => {
      const path = directory.level(TABLE);
      truncateSync(path, readFileSync(path).length - 1);
      return basename(path);
    },
    found: /bytes where the MANIFEST has noted/,
  },
  "the foot of a table is overwritten": {
    harm: (directory) => {
      const path = directory.level(TABLE);
      flip(path, 1);
      return basename(path);
    },
    found: /offset \d+|no table/,
  },
  "the identity file is no JSON": {
    harm: (directory) => {
      writeFileSync(directory.file("holdfast.json"), '{"format":');
      return "holdfast.json";
    },
    found: /not an identity file/,
  },
  "the identity file is of a later format": {
    harm: (directory) => {
      editIdentity(directory, { format: 2 });
      return "holdfast.json";
    },
    found: /format 2/,
  },
  "the database is another store's": {
    harm: (directory) => {
      editIdentity(directory, { id: "another" });
      return "holdfast.json";
    },
    found: /belongs to another store/,
    isSeenByRow: true,
  },
  "the database is an older copy": {
    harm: (directory) => {
      editIdentity(directory, { epoch: 9 });
      return "holdfast.json";
    },
    found: /opened 2 times, the file says 9/,
    isSeenByRow: true,
  },
  "all of LevelDB is gone": {
    harm: (directory) => {
      rmSync(directory.file("level"), { recursive: true });
      return "CURRENT";
    },
    found: /missing although the store was founded/,
  },
};

/** What opening answers, and whether the files are as they were. */
async function openDamaged(directory: Directory) {
  const before = directory.digests();
  const outcome = await levelStore(directory.path).catch((error: unknown) => error);
  return { outcome, isUntouched: () => expect(directory.digests()).toEqual(before) };
}

describe("a store is refused, and left byte for byte, where", () => {
  it.each(Object.entries(damages))("%s", async (_, { harm, found, isSeenByRow = false }) => {
    const directory = sample.copy();
    const file = harm(directory);
    const { outcome, isUntouched } = await openDamaged(directory);
    expect(outcome).toBeInstanceOf(CorruptionError);
    const { where, message } = outcome as CorruptionError;
    expect(basename(where)).toBe(file);
    expect(message).toMatch(found);
    if (!isSeenByRow) isUntouched();
    // Trying again changes nothing either: the handle of the first try is gone.
    expect((await openDamaged(directory)).outcome).toBeInstanceOf(CorruptionError);
    if (!isSeenByRow) return isUntouched();
    const db = new Level(directory.file("level"));
    const names = [...sample.rows.keys()].map((name) => encodeKey(name.split("/")));
    expect((await db.getMany(names)).every((text) => text !== undefined)).toBe(true);
    await db.close();
  });
});

describe("a store whose files a kill has left", () => {
  it("opens with a write cut short at the end of the log", async () => {
    const directory = sample.copy();
    const path = directory.level(LOG);
    truncateSync(path, readFileSync(path).length - 3);
    const store = await levelStore(directory.path);
    // The last row was being written: the whole write is gone, and every other row is there.
    expect((await listAll(store, ["t"])).length).toBe(sample.rows.size - 1);
    await store.close();
  });

  it("opens with the head of a record that was never written to its end", async () => {
    const directory = sample.copy();
    appendFileSync(directory.level(LOG), Buffer.from([1, 2, 3, 4, 200]));
    const store = await levelStore(directory.path);
    expect((await listAll(store, ["t"])).length).toBe(sample.rows.size);
    await store.close();
  });

  it("opens where it was killed before its identity file was there", async () => {
    const directory = sample.copy();
    unlinkSync(directory.file("holdfast.json"));
    const store = await levelStore(directory.path);
    expect((await listAll(store, ["t"])).length).toBe(sample.rows.size);
    await store.close();
  });
});

describe("a MANIFEST that is cut short", () => {
  it("at any byte is refused, or nothing that it said is missing", async () => {
    const { length } = readFileSync(sample.copy().level(MANIFEST));
    let refused = 0;
    for (let bytes = 0; bytes < length; bytes += 1) {
      const directory = sample.copy();
      truncateSync(directory.level(MANIFEST), bytes);
      const { outcome, isUntouched } = await openDamaged(directory);
      if (outcome instanceof Error) {
        refused += 1;
        expect(outcome).toBeInstanceOf(CorruptionError);
        isUntouched();
      } else {
        const store = outcome as LevelStore;
        expect((await listAll(store, ["t"])).length).toBe(sample.rows.size);
        await store.close();
      }
      rmSync(directory.path, { recursive: true });
    }
    expect(refused).toBeGreaterThan(length / 2);
  });
});

describe("any one bit that is flipped in", () => {
  const files: Readonly<Record<string, RegExp>> = { "the log": LOG, "a table": TABLE };
  it.each(Object.entries({ ...files, "the MANIFEST": MANIFEST, CURRENT: /^CURRENT$/ }))(
    "%s is refused, or shows in what is read: no row changes or goes in silence",
    async (_, name) => {
      await fc.assert(
        fc.asyncProperty(
          fc.double({ min: 0, max: 1, noNaN: true }),
          fc.integer({ min: 0, max: 7 }),
          async (at, bit) => {
            const directory = sample.copy();
            flip(directory.level(name), at, bit);
            const { outcome, isUntouched } = await openDamaged(directory);
            if (outcome instanceof Error) {
              expect(isHoldfastError(outcome)).toBe(true);
              expect(outcome).toBeInstanceOf(CorruptionError);
              isUntouched();
            } else {
              const store = outcome as LevelStore;
              const read = await listAll(store, ["t"]).catch((error: unknown) => error);
              await store.close();
              if (read instanceof Error) expect(read).toBeInstanceOf(StoreSerialization);
              else {
                const rows = (read as Awaited<ReturnType<typeof listAll>>).map(({ key, value }) => [
                  key.join("/"),
                  JSON.stringify(value),
                ]);
                expect(new Map(rows as [string, string][])).toEqual(sample.rows);
              }
            }
            rmSync(directory.path, { recursive: true });
          },
        ),
        { numRuns: 60 },
      );
    },
    60_000,
  );
});

describe("a table that opening did not read", () => {
  it("is read while the store is in use, and damage in it ends all use, by its name", async () => {
    const directory = sample.copy();
    const table = directory.level(TABLE);
    flip(table, 0.2);
    const before = directory.digests();
    const store = await levelStore(directory.path, { verifiedBytes: 0 });
    const found = await vi.waitUntil(() =>
      store.load(["t", "2-1"]).then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    expect(found).toBeInstanceOf(CorruptionError);
    expect(found).toMatchObject({ where: table, found: expect.stringMatching(/offset \d+/) });
    await expect(store.begin()).rejects.toBe(found);
    await expect(store.list({ prefix: ["t"], limit: 1 })).rejects.toBe(found);
    await expect(store.claim(["t"])).rejects.toBe(found);
    await store.close();
    expect(directory.digests()[table]).toBe(before[table]);
    expect((await openDamaged(directory)).outcome).toMatchObject({ where: table });
  });

  it("keeps no process from ending, and is left alone once the store is closed", async () => {
    const directory = sample.copy();
    const store = await levelStore(directory.path, { verifiedBytes: 0 });
    await store.close();
    flip(directory.level(TABLE), 0.2);
    await new Promise((resolve) => setTimeout(resolve, 60));
    await expect(store.begin()).rejects.toThrow(/closed/);
  });

  it("refuses a commit that is under way, which then is not there", async () => {
    const directory = sample.copy();
    flip(directory.level(TABLE), 0.2);
    const store = await levelStore(directory.path, { verifiedBytes: 0 });
    const transaction = await store.begin();
    transaction.put(["t", "new"], 1);
    await vi.waitUntil(() =>
      store.load(["t", "2-1"]).then(
        () => false,
        () => true,
      ),
    );
    await expect(transaction.commit()).rejects.toBeInstanceOf(CorruptionError);
    await store.close();
  });
});

describe("a record that somebody edited", () => {
  async function edit(change: (text: string) => string | undefined): Promise<Directory> {
    const directory = sample.copy();
    const db = new Level(directory.file("level"), { valueEncoding: "utf8", keyEncoding: "utf8" });
    const key = encodeKey(["t", "1-7"]);
    const text = change(await db.get(key).then((found) => found ?? ""));
    if (text !== undefined) await db.put(key, text);
    await db.close();
    return directory;
  }

  const edits: readonly (readonly [string, (text: string) => string, RegExp])[] = [
    ["its body", (text) => text.replace('"row":7', '"row":8'), /checksum does not match/],
    ["its revision", (text) => text.replace(/"r":\d+/, '"r":99999'), /checksum does not match/],
    ["its operation", (text) => text.replace(/"o":"./, '"o":"x'), /checksum does not match/],
    [
      "its version",
      (text) => text.replace('"v":1', '"v":7'),
      /unsupported record schema version 7/,
    ],
    ["its end", (text) => text.slice(0, -9), /envelope is not complete|checksum does not match/],
    ["all of it", () => "hello", /not a record of holdfast/],
    ["a body that is no JSON", (text) => text.replace('"b":{', '"b":['), /checksum does not match/],
  ];
  it.each(edits)(
    "is refused when it is read, by its key and without its content: %s",
    async (_, change, found) => {
      const directory = await edit(change);
      const store = await levelStore(directory.path);
      const error = await store.load(["t", "1-7"]).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(StoreSerialization);
      expect((error as Error).message).toMatch(found);
      expect((error as Error).message).toContain("t/1-7");
      expect((error as Error).message).not.toContain("7 7 7");
      const transaction = await store.begin();
      await expect(transaction.load(["t", "1-7"])).rejects.toBeInstanceOf(StoreSerialization);
      await transaction.rollback();
      await expect(listAll(store, ["t"])).rejects.toBeInstanceOf(StoreSerialization);
      // The others are still there, and an audit goes on after the one that is not.
      expect((await store.load(["t", "1-8"]))?.value).toMatchObject({ row: 8 });
      const audit = await auditRecords(store);
      expect(audit.findings).toMatchObject([{ where: "t/1-7" }]);
      expect(audit.isPartial).toBe(false);
      await store.close();
    },
  );

  it("is refused under a key that is not its own, whole as it is", async () => {
    const directory = sample.copy();
    const db = new Level(directory.file("level"), { valueEncoding: "utf8", keyEncoding: "utf8" });
    const text = await db.get(encodeKey(["t", "1-7"]));
    await db.put(encodeKey(["t", "1-8"]), text ?? "");
    await db.close();
    const store = await levelStore(directory.path);
    await expect(store.load(["t", "1-8"])).rejects.toThrow(/written under another key/);
    await store.close();
  });
});

describe("a path that cannot be a store", () => {
  it("is refused where there is a file, which stays as it is", async () => {
    const directory = sample.copy();
    const path = directory.file("a-file");
    writeFileSync(path, "mine");
    const error = await levelStore(path).catch((cause: unknown) => cause);
    expect(isHoldfastError(error)).toBe(true);
    expect((error as Error).message).toContain("a-file");
    expect(readFileSync(path, "utf8")).toBe("mine");
  });

  it("is refused where nothing is and nothing is to be made", async () => {
    const directory = sample.copy();
    const path = directory.file("empty");
    mkdirSync(path);
    await expect(levelStore(path, { create: false })).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(levelStore(directory.file("none"), { create: false })).rejects.toBeInstanceOf(
      StoreUnavailable,
    );
  });

  it("is refused where the file system takes nothing", async () => {
    await expect(levelStore("/proc/holdfast/store")).rejects.toBeInstanceOf(StoreUnavailable);
  });
});
