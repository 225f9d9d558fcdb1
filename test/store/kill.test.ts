/** LevelDB under a real SIGKILL: whatever was acknowledged is there, whole, and the lock is free. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { StoreLocked } from "../../src/errors.js";
import { auditFiles } from "../../src/store/level/audit-files.js";
import { levelStore } from "../../src/store/level/level-store.js";
import { auditRecords } from "../../src/store/verify.js";
import { listAll } from "../../src/testing/store/suite.js";

const STORE = new URL("../../dist/src/store/index.js", import.meta.url).href;

/** Writes pairs of rows, many at once, and says of each pair when it is acknowledged. */
const WRITER = `
  import { levelStore } from ${JSON.stringify(STORE)};
  const store = await levelStore(process.argv[2]);
  let next = Number(process.argv[3]);
  const write = async () => {
    for (;;) {
      const pair = next++;
      const transaction = await store.begin();
      transaction.put(["pair", String(pair), "left"], { pair, text: "x".repeat(pair % 5_000) });
      transaction.put(["pair", String(pair), "right"], { pair });
      await transaction.commit();
      process.stdout.write(pair + "\\n");
    }
  };
  for (let writer = 0; writer < 20; writer += 1) void write();
`;

describe("a store whose process is killed", () => {
  it("has every acknowledged commit whole, life after life", async () => {
    const root = mkdtempSync(join(tmpdir(), "holdfast-store-kill-"));
    const script = join(root, "writer.mjs");
    const path = join(root, "store");
    writeFileSync(script, WRITER);
    const acknowledged = new Set<number>();
    for (let life = 0; life < 12; life += 1) {
      const child = spawn(process.execPath, [script, path, String(life * 1_000_000)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const exited = once(child, "exit");
      const until = 20 + Math.floor(Math.random() * 600);
      let lines = 0;
      for await (const line of createInterface({ input: child.stdout })) {
        acknowledged.add(Number(line));
        lines += 1;
        if (lines === 1) await expect(levelStore(path)).rejects.toBeInstanceOf(StoreLocked);
        if (lines === until) child.kill("SIGKILL");
      }
      await exited;
      expect((await auditFiles(path)).findings).toEqual([]);
      const store = await levelStore(path);
      const pairs = new Map<number, number>();
      for (const { value } of await listAll(store, ["pair"])) {
        const { pair } = value as { pair: number };
        pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
      }
      const halves = [...pairs].filter(([, rows]) => rows !== 2);
      expect(halves, `life ${life}, killed after ${until} lines`).toEqual([]);
      const lost = [...acknowledged].filter((pair) => !pairs.has(pair));
      expect(lost, `life ${life}, killed after ${until} lines`).toEqual([]);
      expect((await auditRecords(store)).findings).toEqual([]);
      await store.close();
    }
    rmSync(root, { recursive: true });
  }, 120_000);
});
