/** Images: out of the row before it is written, back before a turn, verified, and swept when unused. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  type BlobStore,
  blobIdOf,
  CorruptionError,
  fileBlobStore,
  type InlineImage,
  type InputRequest,
  memoryBlobStore,
  OperationError,
  StoreUnavailable,
  Supervisor,
  ValidationError,
} from "../../src/index.js";
import { auditBlobs, sweepBlobs } from "../../src/sessions/images.js";
import { keys } from "../../src/sessions/records.js";
import { levelStore, memoryStore, type StateStore } from "../../src/store/index.js";
import { ScriptedExecutor } from "../world.js";

/** One transparent pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image: InlineImage = { type: "image", mediaType: "image/png", data: PNG };
const ID = blobIdOf(image);

const root = mkdtempSync(join(tmpdir(), "holdfast-images-"));
afterAll(() => rmSync(root, { recursive: true }));
let directories = 0;
function directory(): string {
  directories += 1;
  return join(root, `${directories}`);
}

const stores: Readonly<Record<string, () => Promise<{ store: StateStore; blobs: BlobStore }>>> = {
  memory: async () => ({ store: memoryStore(), blobs: memoryBlobStore() }),
  LevelDB: async () => {
    const path = directory();
    return { store: await levelStore(path), blobs: fileBlobStore(join(path, "blobs")) };
  },
};

async function open(parts: { store: StateStore; blobs: BlobStore }, limits = {}) {
  const supervisor = await Supervisor.open({ ...parts, limits: { cancelGraceMs: 1, ...limits } });
  const executor = new ScriptedExecutor();
  const session = await supervisor.sessions.open("s", { executor });
  return { ...parts, supervisor, session, executor };
}

async function blobIds(blobs: BlobStore): Promise<readonly string[]> {
  const ids = [];
  for await (const { id } of blobs.list()) ids.push(id);
  return ids;
}

const prompt: InputRequest = {
  kind: "prompt",
  text: "What is this?",
  blocks: [{ type: "text", text: "look" }, image],
};

describe.each(Object.entries(stores))("on %s", (_, make) => {
  it("S-000-07: a prompt with text and an inline image is stored with a blob and no inline image", async () => {
    const { store, blobs, supervisor, session, executor } = await open(await make());
    await session.accept(prompt);
    const row = await store.load(keys.input("s", 0));
    expect(row?.value).toMatchObject({
      payload: {
        blocks: [
          { type: "text", text: "look" },
          { type: "image", mediaType: "image/png", blob: ID },
        ],
      },
    });
    expect(JSON.stringify(row?.value)).not.toContain(PNG);
    expect(await blobIds(blobs)).toEqual([ID]);
    // The turn gets it back, with its id.
    const turn = await executor.next();
    expect(turn.request.inputs[0]?.payload).toMatchObject({
      blocks: [{}, { data: PNG, blob: ID }],
    });
    turn.resolve({});
    await supervisor.close();
    await store.close();
  });

  it("every kind that takes blocks takes images, and one that is sent twice is kept once", async () => {
    const { store, blobs, supervisor, session } = await open(await make());
    const blocks = [image];
    await session.accept({ kind: "prompt", text: "a", blocks });
    await session.accept({ kind: "peer", body: "b", blocks });
    await session.accept({ kind: "flowStep", stepId: "c", instructions: "c", blocks });
    await session.accept({ kind: "externalEvent", eventType: "d", payload: 1, blocks });
    expect(await blobIds(blobs)).toEqual([ID]);
    await supervisor.close({ mode: "cancel-and-drain" });
    await store.close();
  });

  it("the conversation shows images again, and says so where one is gone", async () => {
    const { store, blobs, supervisor, session, executor } = await open(await make());
    const first = await session.accept(prompt);
    (await executor.next()).resolve({});
    if (first.outcome !== "rejected") await first.completion;
    await session.accept({ kind: "prompt", text: "and now?" });
    const turn = await executor.next();
    const shown = async () => JSON.stringify(await turn.request.transcript.list());
    expect(await shown()).toContain(PNG);
    await blobs.delete(ID);
    expect(await shown()).toContain(`[the image ${ID} is not kept any more]`);
    turn.resolve({});
    await supervisor.close();
    await store.close();
  });

  it("an image that is gone fails the attempts of its input, by its id", async () => {
    const { store, blobs, supervisor, session, executor } = await open(await make(), {
      retryPauseMinMs: 1,
    });
    await session.stop();
    const admitting = await supervisor.sessions.open("s");
    const { inputId } = await admitting.accept(prompt);
    await blobs.delete(ID);
    await supervisor.sessions.open("s", { executor });
    expect(await session.completion(inputId)).toMatchObject({
      type: "abandoned",
      reason: expect.stringContaining(ID),
    });
    expect(executor.turns).toHaveLength(0);
    await supervisor.close({ mode: "cancel-and-drain" });
    await store.close();
  });

  it("a sweep keeps what a record refers to and removes the rest", async () => {
    const { store, blobs, supervisor, session } = await open(await make());
    await session.accept(prompt);
    const orphan = await blobs.put({ mediaType: "image/png", data: "AAAA" });
    await supervisor.close({ mode: "cancel-and-drain" });
    expect(await sweepBlobs(store, blobs)).toMatchObject({ kept: 1, removed: 1 });
    expect(await blobIds(blobs)).toEqual([ID]);
    expect(await blobs.has(orphan)).toBe(false);
    const faults: string[] = [];
    expect(await auditBlobs(store, blobs, (_key, found) => faults.push(found))).toBe(1);
    expect(faults).toEqual([]);
    await blobs.delete(ID);
    await auditBlobs(store, blobs, (_key, found) => faults.push(found));
    expect(faults).toEqual([`its image ${ID} is not there`]);
    await store.close();
  });
});

describe("an image at the door", () => {
  const bad: readonly (readonly [string, object, string])[] = [
    ["no content", { mediaType: "image/png" }, "/blocks/0"],
    ["both contents", { mediaType: "image/png", data: PNG, blob: ID }, "/blocks/0"],
    ["no media type", { data: PNG }, "/blocks/0/mediaType"],
    [
      "a media type with a line end",
      { mediaType: "image/png\n", data: PNG },
      "/blocks/0/mediaType",
    ],
    ["a path as media type", { mediaType: "../../etc", data: PNG }, "/blocks/0/mediaType"],
    ["base64 without padding", { mediaType: "image/png", data: "AAA" }, "/blocks/0/data"],
    ["base64 for URLs", { mediaType: "image/png", data: "__-_" }, "/blocks/0/data"],
    ["base64 with blanks", { mediaType: "image/png", data: "AA A" }, "/blocks/0/data"],
    ["nothing as data", { mediaType: "image/png", data: "" }, "/blocks/0/data"],
    ["a path as blob", { mediaType: "image/png", blob: "sha256:../../x" }, "/blocks/0/blob"],
    [
      "a blob that is not there",
      { mediaType: "image/png", blob: `sha256:${"0".repeat(64)}` },
      "/blocks/0/blob",
    ],
  ];
  it.each(bad)("is refused with %s, and nothing is written", async (_, fields, path) => {
    const { store, blobs, supervisor, session } = await open(
      await (stores.memory as () => never)(),
    );
    const blocks = [{ type: "image", ...fields }];
    const request = { kind: "prompt", text: "x", blocks } as unknown as InputRequest;
    const error = await session.accept(request).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ValidationError);
    expect((error as ValidationError).issues.map((issue) => issue.path)).toContain(path);
    expect(await store.load(keys.input("s", 0))).toBeUndefined();
    expect(await blobIds(blobs)).toEqual([]);
    await supervisor.close();
  });

  it("over the limit is refused with its size", async () => {
    const { supervisor, session } = await open(await (stores.memory as () => never)(), {
      blobBytesMax: 10,
    });
    await expect(session.accept(prompt)).rejects.toThrow(/limits.blobBytesMax/);
    await supervisor.close();
  });

  it("may be larger than a payload, which it is no part of", async () => {
    const { supervisor, session } = await open(await (stores.memory as () => never)(), {
      payloadBytesMax: 1_000,
    });
    const data = Buffer.alloc(100_000, 7).toString("base64");
    const blocks: InlineImage[] = [{ ...image, data }];
    expect(await session.accept({ kind: "prompt", text: "x", blocks })).toMatchObject({
      outcome: "accepted",
    });
    await supervisor.close({ mode: "cancel-and-drain" });
  });

  it("is the same under one idempotency key, sent inline or by its id", async () => {
    const { supervisor, session } = await open(await (stores.memory as () => never)());
    const idempotencyKey = "k";
    const { inputId } = await session.accept({ ...prompt, idempotencyKey } as InputRequest);
    const byId = { type: "image", mediaType: "image/png", blob: ID } as const;
    const blocks = [{ type: "text", text: "look" } as const, byId];
    const again = { kind: "prompt", text: "What is this?", blocks, idempotencyKey } as const;
    expect(await session.accept(again)).toMatchObject({
      outcome: "deduplicated",
      existingId: inputId,
    });
    await supervisor.close({ mode: "cancel-and-drain" });
  });

  it("that cannot be kept is not acknowledged, and the same input is then accepted", async () => {
    const inner = memoryBlobStore();
    let isBroken = true;
    const blobs: BlobStore = {
      ...inner,
      put: async (blob) => {
        if (isBroken) throw new StoreUnavailable("keep a blob", "the disk is full");
        return inner.put(blob);
      },
    };
    const { store, supervisor, session } = await open({ store: memoryStore(), blobs });
    const error = await session.accept(prompt).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(OperationError);
    expect(String(error)).toContain("the disk is full");
    expect(await store.load(keys.input("s", 0))).toBeUndefined();
    isBroken = false;
    expect(await session.accept(prompt)).toMatchObject({ outcome: "accepted" });
    await supervisor.close({ mode: "cancel-and-drain" });
  });
});

describe("blobs as files", () => {
  it("are the bytes behind their media type, and damage is told by the file", async () => {
    const path = directory();
    const blobs = fileBlobStore(path);
    expect(await blobs.put(image)).toBe(ID);
    expect(await blobs.put(image)).toBe(ID);
    expect(await blobs.get(ID)).toEqual({ mediaType: "image/png", data: PNG });
    const digest = ID.slice("sha256:".length);
    const file = join(path, digest.slice(0, 2), digest);
    const bytes = readFileSync(file);
    expect(bytes.subarray(0, 10).toString()).toBe("image/png\n");
    expect(bytes.subarray(10).equals(Buffer.from(PNG, "base64"))).toBe(true);
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    await expect(blobs.get(ID)).rejects.toBeInstanceOf(CorruptionError);
    await expect(blobs.get(ID)).rejects.toMatchObject({ where: file });
    await blobs.delete(ID);
    await blobs.delete(ID);
    expect(await blobs.get(ID)).toBeUndefined();
  });

  it("leave nothing behind of a write that a kill cut off", async () => {
    const path = directory();
    const blobs = fileBlobStore(path);
    await blobs.put(image);
    const folder = join(path, ID.slice(7, 9));
    writeFileSync(join(folder, `${ID.slice(7)}.1.draft`), "half");
    expect(await blobIds(blobs)).toEqual([ID]);
    expect(readdirSync(folder)).toEqual([ID.slice(7)]);
  });

  it("are told apart by their media type too, and never reach outside their directory", async () => {
    const blobs = fileBlobStore(directory());
    expect(await blobs.put({ mediaType: "image/gif", data: PNG })).not.toBe(ID);
    for (const id of ["../../etc/passwd", "sha256:..", "", `sha256:${"A".repeat(64)}`]) {
      expect(await blobs.get(id)).toBeUndefined();
      expect(await blobs.has(id)).toBe(false);
      await blobs.delete(id);
    }
  });
});
