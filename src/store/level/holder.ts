/**
 * Who has a store open. LevelDB's LOCK file is what protects the data; this file only finds out
 * about it without touching anything, and makes the message that names the holder.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Level } from "level";
import { StoreLocked } from "../../errors.js";
import { levelCode } from "./backend.js";
import { holderPath, levelPath } from "./layout.js";

interface Holder {
  readonly pid: number;
  readonly command: string;
  /** ISO 8601. */
  readonly since: string;
}

/** Directories open in this process; shared by all copies of this package in it. */
const openHere: Set<string> = openDirectories();

/** Takes a directory for this process. @throws StoreLocked another handle here has it */
export function takeDirectory(root: string): void {
  if (openHere.has(root)) throw new StoreLocked(root, "another handle of this same process");
  openHere.add(root);
}

export function releaseDirectory(root: string): void {
  openHere.delete(root);
}

/** Leaves word of who has the store. */
export async function writeHolder(root: string, nowIso: string): Promise<void> {
  const command = [process.argv0, process.argv[1] ?? ""].map((part) => basename(part)).join(" ");
  const holder: Holder = { pid: process.pid, command: command.trim(), since: nowIso };
  await writeFile(holderPath(root), `${JSON.stringify(holder)}\n`);
}

export async function removeHolder(root: string): Promise<void> {
  await rm(holderPath(root), { force: true });
}

/** The error for a store that somebody has, naming them as far as they are known. */
export async function lockedBy(root: string, cause?: unknown): Promise<StoreLocked> {
  const holder = await readHolder(root);
  if (holder === undefined) return new StoreLocked(root, "another process", cause);
  const name = `process ${holder.pid} (${holder.command}, since ${holder.since})`;
  return new StoreLocked(
    root,
    isOfThisProcess(holder)
      ? "another handle of this same process"
      : isAlive(holder.pid)
        ? name
        : `another process; the last to say so was ${name}, which is not alive on this machine`,
    cause,
  );
}

/**
 * Whether another process holds the LOCK file. LevelDB is asked to open an empty directory whose
 * LOCK is a link to the real one: it tries that lock first, then finds no database and gives up, so
 * the real directory stays as it is. Where this cannot be done the answer is no, and the real open
 * finds out.
 */
export async function isLockedElsewhere(root: string): Promise<boolean> {
  const lock = join(levelPath(root), "LOCK");
  if (process.platform === "win32" || !existsSync(lock)) return false;
  // Locks of this system belong to a process: trying one that it holds would end it.
  const holder = await readHolder(root);
  if (holder !== undefined && isOfThisProcess(holder)) return false;
  let probe: string | undefined;
  try {
    probe = await mkdtemp(join(tmpdir(), "holdfast-lock-"));
    await symlink(lock, join(probe, "LOCK"));
    const db = new Level(probe, { createIfMissing: false });
    await db.open();
    await db.close();
    return false;
  } catch (error) {
    return levelCode(error) === "LEVEL_LOCKED";
  } finally {
    if (probe !== undefined) await rm(probe, { recursive: true, force: true });
  }
}

async function readHolder(root: string): Promise<Holder | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(holderPath(root), "utf8"));
    if (typeof value !== "object" || value === null) return undefined;
    const { pid, command, since } = { ...value } as { readonly [name: string]: unknown };
    if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
    return { pid, command: String(command), since: String(since) };
  } catch {
    // It serves messages only; without it the message is shorter.
    return undefined;
  }
}

/** Numbers of processes are used again, always so in containers; so the time counts too. */
function isOfThisProcess({ pid, since }: Holder): boolean {
  return pid === process.pid && Date.parse(since) >= Date.now() - process.uptime() * 1_000 - 1_000;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function openDirectories(): Set<string> {
  const key = Symbol.for("holdfast.store.openDirectories");
  const registry = globalThis as { [key]?: Set<string> };
  registry[key] ??= new Set();
  return registry[key];
}
