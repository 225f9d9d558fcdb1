/** Images by way of the command line: kept beside the records, verified, and swept by `store gc`. */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fileBlobStore } from "../../src/blobs/files.js";
import { exitCodes } from "../../src/cli/exit-codes.js";
import { blobsPath } from "../../src/store/level/layout.js";
import { Directory } from "./run-cli.js";

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPhfDwAChAGA60e6kgAAAABJRU5ErkJggg==";
const line = JSON.stringify({
  text: "What is this?",
  blocks: [{ type: "image", mediaType: "image/png", data: pixel }],
});

let directory: Directory;
beforeEach(async () => {
  directory = new Directory();
  const run = await directory.run(["session", "s"], `${line}\n`);
  expect(run.code).toBe(exitCodes.ok);
});
afterEach(() => directory.remove());

/** Paths of the files that hold images. */
function blobFiles(): readonly string[] {
  const root = blobsPath(directory.file(".holdfast"));
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

it("an image is one file, and no row holds its bytes", async () => {
  expect(blobFiles()).toHaveLength(1);
  const shown = await directory.run(["--json", "inputs", "list", "s"]);
  expect(shown.stdout).toContain('"blob":"sha256:');
  expect(shown.stdout).not.toContain(pixel);
  const { values } = await directory.json(["store", "verify"]);
  expect(values).toMatchObject([{ type: "verified", findings: 0, blobs: 1 }]);
});

it("`store gc` keeps what a record refers to, and removes the rest", async () => {
  const blobs = fileBlobStore(blobsPath(directory.file(".holdfast")));
  await blobs.put({ mediaType: "image/png", data: Buffer.from("nobody's").toString("base64") });
  expect(blobFiles()).toHaveLength(2);
  const first = await directory.json(["store", "gc"]);
  expect(first).toMatchObject({ code: exitCodes.ok, stderr: "" });
  expect(first.values).toEqual([
    { kept: 1, removed: 1, removedBytes: "image/png\nnobody's".length },
  ]);
  const second = await directory.run(["store", "gc"]);
  expect(second.stdout).toBe("0 images removed (0 bytes), 1 kept.\n");
  expect(blobFiles()).toHaveLength(1);
});

it.each([
  ["missing", (path: string) => rmSync(path)],
  ["damaged", (path: string) => writeFileSync(path, "something else")],
])("`store verify` finds an image that is %s", async (_, harm) => {
  harm(blobFiles()[0] as string);
  const run = await directory.json(["store", "verify"]);
  expect(run.code).toBe(exitCodes.corruption);
  expect(run.values).toMatchObject([
    { type: "finding", invariant: "blobs" },
    { type: "verified", findings: 1 },
  ]);
});
