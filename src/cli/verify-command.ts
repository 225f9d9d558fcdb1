/**
 * `store verify`: the audit of files, records and sessions. Files are judged first and without
 * opening anything, since LevelDB changes them when it opens; where they are at fault the audit ends
 * there, so that nothing is lost that could still be saved.
 */
import { realpath } from "node:fs/promises";
import type { BlobStore } from "../blobs/blob-store.js";
import { fileBlobStore } from "../blobs/files.js";
import { isHoldfastError } from "../errors.js";
import { auditBlobs } from "../sessions/images.js";
import { auditSessions } from "../sessions/verify.js";
import { showKey } from "../store/keys.js";
import { auditFiles, type FileAudit } from "../store/level/audit-files.js";
import { isLockedElsewhere, lockedBy } from "../store/level/holder.js";
import { blobsPath } from "../store/level/layout.js";
import type { StateStore } from "../store/port.js";
import { auditRecords } from "../store/verify.js";
import { requireStoreAt, withExistingStore } from "./existing-store.js";
import { type ExitCode, exitCodes } from "./exit-codes.js";
import type { Output } from "./output.js";
import { count, oneLine } from "./plain-text.js";

/** Findings printed; the count goes on. */
const FINDINGS_SHOWN = 1_000;

/** @throws StoreLocked somebody is changing the files right now */
export async function verifyStore(directory: string, output: Output): Promise<ExitCode> {
  requireStoreAt(directory);
  const root = await realpath(directory);
  if (await isLockedElsewhere(root)) throw await lockedBy(root);
  const findings = new Findings(output);
  const files = await filesOf(root);
  for (const { where, found } of files.findings) findings.add({ invariant: "files", where, found });
  const { tables, tableBytes, logs, batches } = files;
  const fileCounts = { tables, tableBytes, logs, batches };
  if (files.findings.length > 0) {
    output.remark("Records and sessions were not read: opening would change the files.");
    return findings.conclude({ files: fileCounts }, "");
  }
  const { records, sessions, blobs } = await withExistingStore(root, (store) =>
    audit(store, fileBlobStore(blobsPath(root)), findings),
  );
  return findings.conclude(
    { files: fileCounts, records, sessions, blobs },
    `${count(tables, "table")} and ${count(logs, "log")}, ${count(records, "record")}, ${count(sessions.sessions, "session")} with ${count(sessions.inputs, "input")} (${sessions.unfinished} unfinished), ${count(sessions.receipts, "receipt")} and ${count(sessions.messages, "message")}, ${count(blobs, "image")}`,
  );
}

/** A file that cannot be read at all is a finding like every other. */
async function filesOf(root: string): Promise<Omit<FileAudit, "findings"> & FoundFiles> {
  try {
    return await auditFiles(root);
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (isHoldfastError(error) || code === undefined) throw error;
    const found = code === "ENOENT" ? "it is missing" : `it cannot be read (${code})`;
    const findings = [{ where: path ?? root, found }];
    return { tables: 0, tableBytes: 0, logs: 0, batches: 0, findings };
  }
}

interface FoundFiles {
  readonly findings: readonly { readonly where: string; readonly found: string }[];
}

async function audit(store: StateStore, blobStore: BlobStore, findings: Findings) {
  const { records, findings: found, isPartial } = await auditRecords(store);
  for (const { where, found: text } of found) findings.add({ invariant: "I1", where, found: text });
  if (isPartial) findings.isPartial = true;
  const sessions = await auditSessions(store, ({ invariant, key, found: text }) =>
    findings.add({ invariant, where: showKey(key), found: text }),
  );
  // Records that cannot be read cannot be asked for their images either.
  const blobs = isPartial || found.length > 0 ? 0 : await imagesOf(store, blobStore, findings);
  return { records, sessions, blobs };
}

function imagesOf(store: StateStore, blobs: BlobStore, findings: Findings): Promise<number> {
  return auditBlobs(store, blobs, (key, found) =>
    findings.add({ invariant: "blobs", where: showKey(key), found }),
  );
}

interface PrintedFinding {
  readonly invariant: string;
  readonly where: string;
  readonly found: string;
}

class Findings {
  isPartial = false;
  #count = 0;
  readonly #shown: PrintedFinding[] = [];
  readonly #output: Output;

  constructor(output: Output) {
    this.#output = output;
  }

  add(finding: PrintedFinding): void {
    this.#count += 1;
    if (this.#shown.length < FINDINGS_SHOWN) this.#shown.push(finding);
  }

  async conclude(counts: object, text: string): Promise<ExitCode> {
    const findings = this.#count;
    for (const { invariant, where, found } of this.#shown) {
      await this.#output.print(
        { type: "finding", invariant, where, found },
        `${invariant.padEnd(5)}  ${oneLine(where)}  ${oneLine(found)}`,
      );
    }
    await this.#output.print(
      { type: "verified", findings, isPartial: this.isPartial, ...counts },
      findings === 0 ? `Sound: ${text}.` : undefined,
    );
    if (findings === 0) return exitCodes.ok;
    const more = findings > FINDINGS_SHOWN ? `, the first ${FINDINGS_SHOWN} shown` : "";
    const partial = this.isPartial ? " The audit ended early." : "";
    this.#output.fault(
      `${count(findings, "finding")}${more}.${partial} Keep a copy of the directory before anything else.`,
    );
    return exitCodes.corruption;
  }
}
