/**
 * The embedded durable store: LevelDB in one directory, for one process at a time. Opening is
 * explicit and asynchronous; whatever can be wrong with a directory is said there.
 *
 *     <path>/holdfast.json   identity of the store
 *     <path>/holder.json     who has it open
 *     <path>/level/          LevelDB
 */
import { mkdir, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Level } from "level";
import { CorruptionError, StoreUnavailable } from "../../errors.js";
import { checkedStore } from "../checked.js";
import { openEngine } from "../optimistic.js";
import type { StateStore } from "../port.js";
import { LevelBackend } from "./backend.js";
import { checkInBackground } from "./background-check.js";
import { checkLevelFiles, type LiveTable } from "./check-files.js";
import { damaged } from "./check-tables.js";
import {
  isLockedElsewhere,
  lockedBy,
  releaseDirectory,
  removeHolder,
  takeDirectory,
  writeHolder,
} from "./holder.js";
import {
  compareIdentity,
  type IdentityFile,
  readIdentityFile,
  writeIdentityFile,
} from "./identity-file.js";
import { identityPath, levelPath } from "./layout.js";
import { openingError } from "./opening-error.js";

export interface LevelStoreOptions {
  /** Whether a store is founded where there is none. Default true. */
  readonly create?: boolean;
  /** Blocks of tables kept in memory, in bytes. Default 8 MiB. */
  readonly cacheBytes?: number;
  /**
   * Bytes of tables whose rows are verified before the store opens, at some 2 ms a MiB; the rest is
   * verified while it is in use. Default 64 MiB.
   */
  readonly verifiedBytes?: number;
}

const MIB = 1_024 * 1_024;

/** A store in a directory. */
export interface LevelStore extends StateStore {
  /** The directory, absolute and without links. */
  readonly path: string;
  /** Names this store for as long as it exists. */
  readonly id: string;
}

/**
 * Opens the store in a directory, or founds one where nothing is. Damage found before LevelDB opens
 * leaves every file as it was.
 * @throws StoreLocked another process, or another handle of this one, has it
 * @throws CorruptionError its files contradict themselves or each other; the message names the file.
 * Calls of the open store throw it too, once the background has found such a file
 * @throws StoreUnavailable the system refused: permissions, space, too many open files, no directory
 */
export async function levelStore(
  path: string,
  { create = true, cacheBytes = 8 * MIB, verifiedBytes = 64 * MIB }: LevelStoreOptions = {},
): Promise<LevelStore> {
  const root = await findDirectory(resolve(path), create);
  takeDirectory(root);
  try {
    return await openDirectory(root, { create, cacheBytes, verifiedBytes });
  } catch (error) {
    releaseDirectory(root);
    // Files that somebody is writing to may look damaged to whoever reads them meanwhile.
    const isWritten = error instanceof CorruptionError && (await isLockedElsewhere(root));
    throw isWritten ? await lockedBy(root, error) : await openingError(root, error);
  }
}

async function findDirectory(path: string, create: boolean): Promise<string> {
  try {
    if (create) await makeDirectory(path);
    return await realpath(path);
  } catch (error) {
    throw await openingError(path, error);
  }
}

/**
 * Makes a directory and those above it that are missing, one by one: asked to do so itself, Node 20
 * tries for ever where a file system answers ENOENT to every mkdir, as /proc does.
 */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    const parent = dirname(path);
    if (code !== "ENOENT" || parent === path) throw error;
    if (await isDirectory(parent)) throw error;
    await makeDirectory(parent);
    await mkdir(path).catch((again: NodeJS.ErrnoException) => {
      if (again.code !== "EEXIST") throw again;
    });
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function openDirectory(
  root: string,
  { create, cacheBytes, verifiedBytes }: Required<LevelStoreOptions>,
): Promise<LevelStore> {
  const file = await readIdentityFile(identityPath(root));
  const directory = levelPath(root);
  const { isEmpty, unread } = await checkLevelFiles(directory, { rowBytesMax: verifiedBytes });
  if (isEmpty && file !== undefined) {
    throw damaged(join(directory, "CURRENT"), "it is missing although the store was founded");
  }
  if (isEmpty && !create) throw new StoreUnavailable("open", `there is no store at ${root}`);
  const db = new Level<string, string>(directory, {
    createIfMissing: isEmpty,
    cacheSize: cacheBytes,
    keyEncoding: "utf8",
    valueEncoding: "utf8",
  });
  try {
    await db.open();
    return await openRecords(db, { root, file, unread });
  } catch (error) {
    await db.close();
    throw error;
  }
}

async function openRecords(
  db: Level<string, string>,
  opening: {
    readonly root: string;
    readonly file: IdentityFile | undefined;
    readonly unread: readonly LiveTable[];
  },
): Promise<LevelStore> {
  const { root, file } = opening;
  const path = identityPath(root);
  const nowIso = new Date().toISOString();
  let endCheck = () => {};
  const backend = new LevelBackend(db, async () => {
    endCheck();
    await removeHolder(root);
    releaseDirectory(root);
  });
  const engine = await openEngine(backend, {
    nowIso,
    verify: (row) => {
      if (file !== undefined) compareIdentity(path, file, row);
    },
  });
  await writeIdentityFile(path, engine.identity);
  await writeHolder(root, nowIso);
  endCheck = checkInBackground(opening.unread, (damage) => engine.condemn(damage));
  return Object.assign(checkedStore(engine), { path: root, id: engine.identity.id });
}
