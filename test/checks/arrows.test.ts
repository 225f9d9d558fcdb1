/** The check of the arrows: the tree keeps them, and the check sees each kind of breach. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const script = new URL("arrows.mjs", import.meta.url);
const { arrowBreaches } = (await import(script.href)) as {
  arrowBreaches(root: string): readonly string[];
};

/** The breaches of a tree that is made of these files. */
function breachesOf(files: Readonly<Record<string, string>>): readonly string[] {
  const root = mkdtempSync(join(tmpdir(), "holdfast-arrows-"));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(root, dirname(path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return arrowBreaches(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

describe("the arrows of this tree", () => {
  it("are kept", () => {
    const run = spawnSync(process.execPath, [fileURLToPath(script)], { encoding: "utf8" });
    expect(run.stdout).toBe("");
    expect(run.stderr).toMatch(/^\d+ files, 0 breaches of the arrows\n$/);
    expect(run.stderr).not.toMatch(/^0 files/);
    expect(run.status).toBe(0);
  });
});

/** Title → the file at fault, what it holds, and what the check says of it. */
const breaches: Readonly<Record<string, readonly [string, string, string]>> = {
  "an import upwards": [
    "src/store/a.ts",
    'import "../kernel/b.js";',
    "src/store/a.ts:1 imports ../kernel/b.js, but imports run downwards only, and kernel is not below store",
  ],
  "an import of a room on the same floor": [
    "src/sessions/a.ts",
    'import "../workflows/b.js";',
    "src/sessions/a.ts:1 imports ../workflows/b.js, but imports run downwards only, and workflows is not below sessions",
  ],
  "a type from above": [
    "src/kernel/a.ts",
    '\nimport type { B } from "../sessions/b.js";',
    "src/kernel/a.ts:2 imports ../sessions/b.js, but imports run downwards only, and sessions is not below kernel",
  ],
  "a type that is written as an import": [
    "src/kernel/a.ts",
    'export type A = import("../sessions/b.js").B;',
    "src/kernel/a.ts:1 imports ../sessions/b.js, but imports run downwards only, and sessions is not below kernel",
  ],
  "an import at run time": [
    "src/kernel/a.ts",
    'export const a = () => import("../cli/b.js");',
    "src/kernel/a.ts:1 imports ../cli/b.js, but imports run downwards only, and cli is not below kernel",
  ],
  "a re-export from above": [
    "src/store/a.ts",
    'export { b } from "../supervisor/b.js";',
    "src/store/a.ts:1 imports ../supervisor/b.js, but imports run downwards only, and supervisor is not below store",
  ],
  "the face from below": [
    "src/sessions/a.ts",
    'import "../index.js";',
    "src/sessions/a.ts:1 imports ../index.js, but imports run downwards only, and face is not below sessions",
  ],
  "a chart from the store": [
    "src/store/a.ts",
    'import "../../machines/b.js";',
    "src/store/a.ts:1 imports ../../machines/b.js, but imports run downwards only, and machines is not below store",
  ],
  "a file outside of all rooms": [
    "src/sessions/a.ts",
    'import "../attic/b.js";',
    "src/sessions/a.ts:1 imports ../attic/b.js, but that is in no room of the design",
  ],
  "a chart that knows the store": [
    "machines/a.ts",
    'import "../src/store/b.js";',
    "machines/a.ts:1 imports ../src/store/b.js, but machines import only xstate and machines",
  ],
  "a chart that knows Node": [
    "machines/a.ts",
    'import "node:fs";',
    "machines/a.ts:1 imports node:fs, but machines import only xstate and machines",
  ],
  "errors that import": [
    "src/errors.ts",
    'import type { B } from "./limits.js";',
    "src/errors.ts:1 imports ./limits.js, but errors and limits import nothing",
  ],
  "an adapter of the store from a room above": [
    "src/sessions/a.ts",
    'import "../store/level/b.js";',
    "src/sessions/a.ts:1 imports ../store/level/b.js, but adapters of the store are leaves, chosen where a store is opened",
  ],
  "XState beside its adapter": [
    "src/sessions/a.ts",
    'import { createActor } from "xstate";',
    "src/sessions/a.ts:1 imports xstate, but at run time only src/kernel/xstate.ts, src/testing and machines touch it",
  ],
  "the graph beside its adapter": [
    "src/testing/a.ts",
    'import "@xstate/graph";',
    "src/testing/a.ts:1 imports @xstate/graph, but only src/testing/graph.ts touches it",
  ],
  "the root of effect": [
    "src/kernel/a.ts",
    'import { Effect } from "effect";',
    "src/kernel/a.ts:1 imports effect, but the root of effect is slow to load: take the deep path, as effect/Effect",
  ],
  "the package by its own name": [
    "src/cli/a.ts",
    'import "holdfast/store";',
    "src/cli/a.ts:1 imports holdfast/store, but inside, files are imported by their path, so that the rooms hold",
  ],
  "a face with code of its own": [
    "src/index.ts",
    'export { a } from "./errors.js";\nexport const b = 1;',
    "src/index.ts:2 holds code of its own, but the face only re-exports",
  ],
};

describe("the check", () => {
  it.each(Object.entries(breaches))("sees %s", (_, [path, text, expected]) => {
    expect(breachesOf({ [path]: text })).toEqual([expected]);
  });

  it("sees every breach of a tree, file by file", () => {
    const files = Object.fromEntries([
      ["src/store/a.ts", 'import "../kernel/b.js";\nimport "../cli/b.js";'],
      ["machines/a.ts", 'import "effect";'],
    ]);
    expect(breachesOf(files).map((line) => line.split(" ")[0])).toEqual([
      "machines/a.ts:1",
      "machines/a.ts:1",
      "src/store/a.ts:1",
      "src/store/a.ts:2",
    ]);
  });

  it("lets pass what runs downwards", () => {
    expect(
      breachesOf({
        "machines/a.ts": 'import { setup } from "xstate";\nimport "./b.js";',
        "src/errors.ts": "export class A {}",
        "src/index.ts": 'export { A } from "./errors.js";\nexport { b } from "./store/memory.js";',
        "src/store/a.ts": 'import { A } from "../errors.js";\nimport "./b.js";',
        "src/store/index.ts": 'export { b } from "./level/b.js";',
        "src/kernel/xstate.ts": 'import { createActor } from "xstate";',
        "src/kernel/a.ts": 'import * as Effect from "effect/Effect";\nimport "../store/a.js";',
        "src/sessions/a.ts":
          'import "../../machines/a.js";\nimport type { Actor } from "xstate";\nimport "../kernel/a.js";',
        "src/supervisor/open.ts": 'import "../store/level/b.js";\nimport "../sessions/a.js";',
        "src/testing/graph.ts": 'import "@xstate/graph";\nimport "../store/memory.js";',
        "src/cli/main.ts":
          'import "commander";\nconst { a } = await import("../supervisor/open.js");',
      }),
    ).toEqual([]);
  });
});
