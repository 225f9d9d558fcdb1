/** docs/testing.md against the tests that it speaks of. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/store/index.js";
import { storeConformance } from "../../src/testing/index.js";
import { codeBlocks, readPage, tableRows } from "./page.js";

const page = readPage("testing.md");
const root = fileURLToPath(new URL("../..", import.meta.url));
const firstCells = (heading: string): readonly string[] =>
  tableRows(page, heading).map(([cell = ""]) => cell.replaceAll("`", ""));
const testFiles = readdirSync(`${root}/test`, { recursive: true, encoding: "utf8" });

describe("docs/testing.md", () => {
  it("names folders and files that are there", () => {
    const paths = new Set([...firstCells("folder"), ...(page.match(/\btest\/[\w./-]*\w/g) ?? [])]);
    expect(paths.size).toBeGreaterThan(8);
    for (const path of paths) expect(existsSync(`${root}/${path}`), path).toBe(true);
  });

  it("names every variable that tests read, and no other", () => {
    const used = new Set<string>();
    for (const name of testFiles.filter((file) => /\.m?[jt]s$/.test(file))) {
      const source = readFileSync(`${root}/test/${name}`, "utf8");
      for (const [, found = ""] of source.matchAll(/process\.env\.(HOLDFAST_TEST_\w+)/g)) {
        used.add(found);
      }
    }
    expect([...firstCells("variable")].sort()).toEqual([...used].sort());
  });

  it("names the faults of the crash loops", () => {
    const source = readFileSync(`${root}/test/crash/every-commit.test.ts`, "utf8");
    const [, list = ""] = /const faults: readonly Fault\[\] = \[([^\]]*)\]/.exec(source) ?? [];
    const faults = [...list.matchAll(/"(\w+)"/g)].map(([, fault]) => fault);
    expect(firstCells("fault")).toEqual(faults);
  });

  it("names the chapters of the conformance suite", () => {
    const chapters: string[] = [];
    storeConformance({
      describe: (title, body) => {
        chapters.push(title);
        body();
      },
      it: () => {},
      make: () => memoryStore(),
      reopen: (closed) => closed,
    });
    expect(firstCells("chapter")).toEqual(chapters);
  });

  it("has an example for a store of one's own that runs as it stands", () => {
    const [example = ""] = codeBlocks(page, "js");
    // The package finds itself by its name from its own directory.
    const run = spawnSync(process.execPath, ["--input-type=module", "-e", example], {
      cwd: root,
      encoding: "utf8",
      timeout: 50_000,
      // As a child of a test runner of Node it would report to that one.
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    expect(run).toMatchObject({ status: 0, stderr: "" });
    expect(run.stdout).toMatch(/^# fail 0$|^ℹ fail 0$/m);
    const passed = /^[#ℹ] pass (\d+)$/m.exec(run.stdout)?.[1];
    expect(Number(passed)).toBeGreaterThan(50);
  });
});
