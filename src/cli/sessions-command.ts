/** `sessions list` and `sessions show`: what is stored, without claiming or changing anything. */
import { listInputs, loadSession, type SessionView, sessionViewOf } from "../sessions/handle.js";
import {
  type BoundaryReceipt,
  decodeSession,
  keys,
  type TranscriptEntry,
} from "../sessions/records.js";
import { type StoredSessionId, sessionIds } from "../sessions/session-ids.js";
import type { StateStore } from "../store/port.js";
import { storeWords } from "./existing-store.js";
import { exitCodeOf, exitCodes } from "./exit-codes.js";
import { findSessionId } from "./id-prefix.js";
import type { Output } from "./output.js";
import { count, oneLine, plainId, shellWord } from "./plain-text.js";

/** Boundaries shown of a session, the last ones. */
const TAIL = 5;
const CONTENT_MAX = 100;

export async function listSessions(store: StateStore, output: Output): Promise<void> {
  let found = 0;
  let damage: unknown;
  for await (const session of sessionIds(store)) {
    if (output.closed.aborted) return;
    found += 1;
    try {
      await printSession(store, session, output);
    } catch (error) {
      if (exitCodeOf(error) !== exitCodes.corruption) throw error;
      // A session that is damaged does not hide the others; it is told when they have been shown.
      damage ??= error;
      const { id } = session;
      await output.print({ id, state: null, damaged: true }, `${plainId(id)}  is damaged`);
    }
  }
  if (damage !== undefined) throw damage;
  if (found === 0) output.remark("No sessions in this store.");
}

async function printSession(
  store: StateStore,
  { id, record }: StoredSessionId,
  output: Output,
): Promise<void> {
  const own = record === "unreadable" ? await store.load(keys.session(id)) : record;
  if (own === undefined) {
    return output.print({ id, state: null }, `${plainId(id)}  has rows, was never opened here`);
  }
  const view = sessionViewOf(own);
  await output.print(view, `${plainId(id)}  ${summaryOf(view)}`);
}

export async function showSession(
  store: StateStore,
  given: string,
  output: Output,
  /** Where the store is, for the hint of what to type next. */
  directory: string,
): Promise<void> {
  const id = await findSessionId(store, given);
  const view = await loadSession(store, id);
  const phases = await countPhases(store, id);
  const boundaries = await lastBoundaries(store, id);
  const text = [
    `session    ${plainId(id)}`,
    `state      ${view.state}${view.turnId === null ? "" : `, turn ${plainId(view.turnId)}`}`,
    `inputs     ${view.inputs.admitted} admitted, ${view.inputs.unfinished} unfinished${phasesOf(phases)}`,
    `messages   ${view.messages}, digest ${view.digest === "" ? "none" : view.digest}`,
    `created    ${oneLine(view.createdAt)}`,
    `updated    ${oneLine(view.updatedAt)}`,
    `metadata   ${oneLine(JSON.stringify(view.metadata), 200)}`,
    ...(boundaries.length === 0 ? [] : [`boundaries the last ${boundaries.length}:`]),
    ...boundaries.flatMap(({ entry, receipt }) => [
      `  turn ${plainId(entry.turnId)}${receiptOf(entry, receipt)}`,
      ...entry.messages.map(
        (message) =>
          `    ${oneLine(String(message.role ?? "message"), 12).padEnd(10)} ${contentOf(message.content)}`,
      ),
    ]),
  ].join("\n");
  await output.print({ ...view, phases, boundaries }, text);
  output.remark(`All of its inputs: holdfast inputs list ${shellWord(id)}${storeWords(directory)}`);
}

function summaryOf({ state, inputs, messages, updatedAt }: SessionView): string {
  const waiting = inputs.unfinished === 0 ? "" : `, ${inputs.unfinished} unfinished`;
  return `${state}  ${count(inputs.admitted, "input")}${waiting}  ${count(messages, "message")}  ${oneLine(updatedAt)}`;
}

/** Inputs by phase. Reads every input of the session, page by page. */
async function countPhases(
  store: StateStore,
  id: string,
): Promise<Readonly<Record<string, number>>> {
  const phases: Record<string, number> = {};
  let after: number | undefined;
  do {
    const page = await listInputs(store, id, {
      limit: 256,
      ...(after === undefined ? {} : { after }),
    });
    for (const { phase } of page.items) phases[phase] = (phases[phase] ?? 0) + 1;
    after = page.next;
  } while (after !== undefined);
  return phases;
}

function phasesOf(phases: Readonly<Record<string, number>>): string {
  const parts = Object.entries(phases).map(([phase, n]) => `${n} ${phase}`);
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
}

async function lastBoundaries(
  store: StateStore,
  id: string,
): Promise<readonly { entry: TranscriptEntry; receipt: BoundaryReceipt | null }[]> {
  const record = await store.load(keys.session(id));
  const end = record === undefined ? 0 : decodeSession(record).ledger.nextTranscript;
  const entries: TranscriptEntry[] = [];
  for (let at = Math.max(0, end - TAIL); at < end; at += 1) {
    const row = await store.load(keys.transcriptEntry(id, at));
    if (row !== undefined) entries.push(row.value as unknown as TranscriptEntry);
  }
  return Promise.all(
    entries.map(async (entry) => {
      if (entry.receipt === null) return { entry, receipt: null };
      const row = await store.load(keys.receipt(id, entry.turnId, entry.receipt));
      return { entry, receipt: (row?.value as unknown as BoundaryReceipt | undefined) ?? null };
    }),
  );
}

function receiptOf(entry: TranscriptEntry, receipt: BoundaryReceipt | null): string {
  if (entry.receipt === null) return ", without an input";
  if (receipt === null) return ` receipt ${entry.receipt}, which is not there`;
  const inputs = count(receipt.inputIds.length, "input");
  return ` receipt ${receipt.sequence}: ${inputs} consumed at ${oneLine(receipt.at)}`;
}

function contentOf(content: unknown): string {
  return oneLine(
    typeof content === "string" ? content : (JSON.stringify(content) ?? ""),
    CONTENT_MAX,
  );
}
