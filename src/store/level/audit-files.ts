/**
 * The audit of LevelDB's files that `store verify` makes: everything that opening checks, and every
 * block of every live table, whose checksums LevelDB does not look at when it reads. Reads only.
 * The store must not be open, since a running one replaces its files.
 */
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { CorruptionError } from "../../errors.js";
import {
  checkLevelFiles,
  checkManifest,
  liveLogs,
  liveTables,
  readCurrent,
  readLog,
} from "./check-files.js";
import { checkTable } from "./check-tables.js";
import { readIdentityFile } from "./identity-file.js";
import { identityPath, levelPath, logName, sortLevelFiles } from "./layout.js";

export interface FileAudit {
  readonly tables: number;
  readonly tableBytes: number;
  readonly logs: number;
  /** Batches that wait in logs. */
  readonly batches: number;
  /** The first fault of each file. */
  readonly findings: readonly CorruptionError[];
}

const NOTHING: FileAudit = { tables: 0, tableBytes: 0, logs: 0, batches: 0, findings: [] };

/**
 * Audits the files of the store in a directory. Where CURRENT or the MANIFEST is at fault nothing
 * else can be judged and that is the only finding. Takes as long as reading all tables.
 */
export async function auditFiles(path: string): Promise<FileAudit> {
  const root = resolve(path);
  const directory = levelPath(root);
  const findings: CorruptionError[] = [];
  const note = async <T>(check: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await check();
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      if (!findings.some((other) => other.where === error.where)) findings.push(error);
      return undefined;
    }
  };
  await note(() => readIdentityFile(identityPath(root)));
  await note(() => checkLevelFiles(directory, { rowBytesMax: 0 }));
  const files = sortLevelFiles(await readdir(directory));
  if (!files.hasCurrent) return { ...NOTHING, findings };
  const version = await note(() => checkManifest(join(directory, readCurrent(directory, files))));
  if (version === undefined) return { ...NOTHING, findings };
  let tableBytes = 0;
  for (const { path: table, size } of liveTables(directory, files, version)) {
    tableBytes += size;
    await note(() => checkTable(table, { size, withData: true }));
  }
  const logs = liveLogs(files.logs, version);
  let batches = 0;
  for (const number of logs) {
    const scan = await note(() => readLog(join(directory, logName(number))));
    batches += scan?.records.length ?? 0;
  }
  return { tables: version.tables.size, tableBytes, logs: logs.length, batches, findings };
}
