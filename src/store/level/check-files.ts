/**
 * Looks at LevelDB's files before LevelDB does. LevelDB opens damaged files in silence: it drops
 * what it cannot read, and starts an empty database where CURRENT is gone. This check changes
 * nothing, so a refusal leaves every file as it was.
 *
 * What must open: every state that a kill leaves. A write may be cut short at the end of a log or
 * of the MANIFEST; tables, logs and MANIFESTs may be left over from work that was not recorded yet,
 * or not removed yet. What must not: anything by which rows would go missing. The two are told
 * apart by one rule. LevelDB removes a table or log only after the MANIFEST edit that makes it
 * needless is synced. So if everything that the readable part of the MANIFEST names is there, and
 * the sequence numbers of the logs connect to it and to each other, then nothing is lost, however
 * the MANIFEST ends; and if something is missing, an edit was lost after the fact.
 */
import { readFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { checkTable, damaged } from "./check-tables.js";
import { type LevelFiles, logName, sortLevelFiles, tableName } from "./layout.js";
import { type LogScan, scanLog } from "./log-format.js";
import { readVersion, type Version } from "./version-edit.js";

/** What a directory holds, as far as opening it goes. */
export interface FilesVerdict {
  /** True where provably no row was ever written. */
  readonly isEmpty: boolean;
  /** Tables whose rows were not looked at, newest first. */
  readonly unread: readonly LiveTable[];
}

export interface LiveTable {
  readonly path: string;
  /** The size that the MANIFEST has noted. */
  readonly size: number;
}

const COMPARATOR = "leveldb.BytewiseComparator";

/** Sequence number and count stand before the rows of a batch. */
const BATCH_HEAD_BYTES = 12;

/**
 * Checks CURRENT, MANIFEST, logs, the frames of all tables, and the rows of the newest ones up to a
 * number of bytes.
 * @throws CorruptionError naming the file, and the offset where there is one
 */
export async function checkLevelFiles(
  directory: string,
  { rowBytesMax }: { readonly rowBytesMax: number },
): Promise<FilesVerdict> {
  const files = sortLevelFiles(await namesIn(directory));
  if (!files.hasCurrent) {
    await checkWithoutCurrent(directory, files);
    return { isEmpty: true, unread: [] };
  }
  const manifest = readCurrent(directory, files);
  const version = checkManifest(join(directory, manifest));
  const unread: LiveTable[] = [];
  let rowBytes = 0;
  for (const table of liveTables(directory, files, version)) {
    rowBytes += table.size;
    const withData = rowBytes <= rowBytesMax;
    checkTable(table.path, { size: table.size, withData });
    if (!withData) unread.push(table);
  }
  checkLogs(directory, files.logs, version);
  return { isEmpty: false, unread };
}

/** The tables that the MANIFEST names, newest first. */
export function liveTables(
  directory: string,
  files: LevelFiles,
  version: Version,
): readonly LiveTable[] {
  return [...version.tables]
    .sort(([a], [b]) => b - a)
    .map(([number, size]) => {
      return { path: join(directory, files.tables.get(number) ?? tableName(number)), size };
    });
}

/** The version by which LevelDB would open, after the checks of MANIFEST and its records. */
export function checkManifest(path: string): Version {
  const scan = readLog(path);
  const found = readVersion(scan.records.map((record) => record.bytes));
  if (!("version" in found)) {
    throw damaged(path, found.what, scan.records[found.index]?.offset);
  }
  const { version } = found;
  if (version.comparator !== COMPARATOR) throw damaged(path, "it names no known order of keys");
  if (
    version.logNumber === undefined ||
    version.nextFileNumber === undefined ||
    version.lastSequence === undefined
  ) {
    throw damaged(path, "it is cut short, its first edits are not complete");
  }
  return version;
}

/** The name in CURRENT. */
export function readCurrent(directory: string, files: LevelFiles): string {
  const path = join(directory, "CURRENT");
  const text = readFileSync(path, "latin1");
  const number = /^MANIFEST-(\d+)\n$/.exec(text)?.[1];
  if (number === undefined) throw damaged(path, "it does not name a MANIFEST");
  if (!files.manifests.includes(Number(number))) {
    throw damaged(path, `it names MANIFEST-${number}, which is missing`);
  }
  return text.slice(0, -1);
}

/** LevelDB's replay: logs that the MANIFEST has not made needless, in order. */
export function liveLogs(logs: readonly number[], version: Version): readonly number[] {
  const { logNumber = 0, previousLogNumber } = version;
  return logs.filter((number) => number >= logNumber || number === previousLogNumber);
}

/** A log as it is, without damage; a torn tail is the caller's matter. */
export function readLog(path: string): LogScan {
  const scan = scanLog(readFileSync(path));
  if (scan.damage !== undefined) throw damaged(path, scan.damage.what, scan.damage.offset);
  return scan;
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** LevelDB would create a new database here, which is right only where no row can be. */
async function checkWithoutCurrent(directory: string, files: LevelFiles): Promise<void> {
  let hasRows = files.tables.size > 0 || files.manifests.some((number) => number > 1);
  for (const number of files.logs) {
    const { size } = await stat(join(directory, logName(number)));
    hasRows ||= size > 0;
  }
  if (hasRows) throw damaged(join(directory, "CURRENT"), "it is missing although data exists");
}

function checkLogs(directory: string, logs: readonly number[], version: Version): void {
  const { logNumber = 0, lastSequence = 0 } = version;
  // The MANIFEST names a log only after creating it; number 0 stands for none yet.
  if (logNumber > 0 && !logs.includes(logNumber)) {
    throw damaged(
      join(directory, logName(logNumber)),
      "it is missing although the MANIFEST names it",
    );
  }
  let next: number | undefined;
  let torn: string | undefined;
  for (const number of liveLogs(logs, version)) {
    const path = join(directory, logName(number));
    const scan = readLog(path);
    if (torn !== undefined && scan.records.length > 0) {
      throw damaged(torn, "it is cut short although a later log goes on");
    }
    for (const { offset, bytes } of scan.records) {
      if (bytes.length < BATCH_HEAD_BYTES) throw damaged(path, "a batch without a head", offset);
      const head = new DataView(bytes.buffer, bytes.byteOffset, BATCH_HEAD_BYTES);
      const sequence = Number(head.getBigUint64(0, true));
      const isConnected = next === undefined ? sequence <= lastSequence + 1 : sequence === next;
      if (!isConnected) throw damaged(path, "batches before this one are missing", offset);
      next = sequence + head.getUint32(8, true);
    }
    if (scan.isTorn) torn = path;
  }
}
