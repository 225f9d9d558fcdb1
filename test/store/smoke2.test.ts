import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { levelStore } from "../../src/store/index.js";
it("smoke", async () => {
  const dir = mkdtempSync(join(tmpdir(), "hf-"));
  for (let round = 1; round <= 4; round++) {
    const t0 = performance.now();
    const s = await levelStore(dir);
    console.log("open", performance.now() - t0);
    const lease = await s.claim(["session", "a"]);
    expect(lease.epoch).toBe(round);
    const t = await s.begin({ lease, operation: "op" });
    t.put(["x", String(round)], { a: "x".repeat(100) }, "absent");
    await t.commit();
    console.log(JSON.stringify(await s.list({ prefix: [], limit: 10 })));
    await expect(levelStore(dir)).rejects.toMatchObject({ _tag: "StoreLocked" });
    await s.close();
  }
  console.log(readdirSync(dir), readdirSync(join(dir, "level")), readFileSync(join(dir, "holdfast.json"), "utf8"));
});
