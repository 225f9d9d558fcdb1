import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { failingStore } from "../../src/store/failing.js";
import { type LevelStore, levelStore } from "../../src/store/level/level-store.js";
import { memoryStore } from "../../src/store/memory.js";
import { storeConformance } from "../../src/testing/store/conformance.js";

describe("the memory store", () => {
  storeConformance({ describe, it, make: () => memoryStore() });
});

describe("the LevelDB store", () => {
  const directories: string[] = [];
  afterAll(async () => {
    for (const directory of directories) await rm(directory, { recursive: true, force: true });
  });
  storeConformance({
    describe,
    it,
    make: async () => {
      const directory = await mkdtemp(join(tmpdir(), "holdfast-conformance-"));
      directories.push(directory);
      return levelStore(directory);
    },
    reopen: (closed) => levelStore((closed as LevelStore).path),
  });
});

describe("a failing store that was told nothing", () => {
  storeConformance({ describe, it, make: () => failingStore(memoryStore()) });
});
