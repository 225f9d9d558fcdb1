/**
 * The audit of all sessions of a store: what must hold between the records of each. It streams, so
 * its memory is constant, and it reads only; a finding never ends it. Nobody may write meanwhile.
 */
import type { SessionContext } from "../../machines/session.js";
import { isHoldfastError } from "../errors.js";
import { journalKey } from "../kernel/journal.js";
import type { StateStore, StoredRecord } from "../store/port.js";
import { auditIndexes, type IndexTotals } from "./audit-indexes.js";
import { auditInputs, type InputTotals } from "./audit-inputs.js";
import { auditJournal, type JournalTotals } from "./audit-journal.js";
import {
  auditReceipts,
  auditTranscript,
  auditTurns,
  type TranscriptTotals,
} from "./audit-proofs.js";
import { auditedRow, auditedRows, type Finding, judged, type Report } from "./audit-rows.js";
import {
  activeSessionsPrefix,
  decodeSession,
  keys,
  type Ledger,
  type SessionRecord,
  sessionsPrefix,
} from "./records.js";
import { idsBelow, type StoredSessionId, sessionIds } from "./session-ids.js";

export type { Finding };

export interface SessionCounts {
  sessions: number;
  inputs: number;
  unfinished: number;
  receipts: number;
  messages: number;
}

/** @throws StoreUnavailable the audit could not go on */
export async function auditSessions(store: StateStore, report: Report): Promise<SessionCounts> {
  const counts: SessionCounts = { sessions: 0, inputs: 0, unfinished: 0, receipts: 0, messages: 0 };
  for await (const { id, record } of sessionIds(store)) {
    await auditSession(store, { id, record }, { report, counts });
  }
  await auditStrays(store, report);
  return counts;
}

async function auditSession(
  store: StateStore,
  { id, record }: StoredSessionId,
  { report, counts }: { readonly report: Report; readonly counts: SessionCounts },
): Promise<void> {
  const isReadable = record !== undefined && record !== "unreadable";
  const session = isReadable ? sessionOf(record, report) : undefined;
  const context = session?.snapshot.context as unknown as SessionContext | undefined;
  const running =
    session === undefined || context === undefined
      ? undefined
      : { isRunning: session.snapshot.value === "running", turnId: context.turnId };
  const inputs = await auditInputs(store, id, running, report);
  await auditTurns(store, id, { session: running, staged: inputs.staged }, report);
  const receipts = await auditReceipts(store, id, report);
  const transcript = await auditTranscript(store, id, report);
  const journal = await auditJournal(store, id, report);
  counts.sessions += 1;
  counts.inputs += inputs.inputs;
  counts.unfinished += inputs.unfinished;
  counts.receipts += receipts;
  counts.messages += transcript.messages;
  const key = keys.session(id);
  if (record === undefined && journal.end > 0) {
    report({ invariant: "I7", key, found: "it is missing, and moves of the session are kept" });
  }
  if (!isReadable || session === undefined || context === undefined) return;
  // Both are written with every move of the session.
  if (journal.operation !== undefined && journal.operation !== record.operation) {
    report({ invariant: "I7", key, found: "it was not written with the last move of its journal" });
  }
  const index = await auditIndexes(store, id, report);
  await judged(key, report, () => auditState(session, context, inputs, report));
  const found = { ledger: session.ledger, inputs, transcript, index, journal };
  await auditLedger(store, id, found, report);
}

function sessionOf(record: StoredRecord, report: Report): SessionRecord | undefined {
  try {
    return decodeSession(record);
  } catch (error) {
    if (!isHoldfastError(error) || error._tag !== "CorruptionError") throw error;
    report({ invariant: "I3", key: record.key, found: error.message });
    return undefined;
  }
}

/** Running exactly with a turn; a session that is over holds nothing. */
function auditState(
  session: SessionRecord,
  { sessionId, turnId, stateBeforeTurn }: SessionContext,
  inputs: InputTotals,
  report: Report,
): void {
  const key = keys.session(sessionId);
  const state = String(session.snapshot.value);
  const say = (found: string) => report({ invariant: "I14", key, found });
  if (state === "running" && turnId === null) say("it is running and names no turn");
  // A session that is retired during a turn lets it end.
  if (turnId !== null && state !== "running" && state !== "retired") {
    say(`it is ${state} and names a turn`);
  }
  if (turnId !== null && stateBeforeTurn === null)
    say("it does not say where it was before its turn");
  if (turnId === null && inputs.staged > 0)
    say(`no turn is in progress and ${inputs.staged} inputs are staged`);
  if ((state === "stopped" || state === "destroyed") && inputs.unfinished > 0) {
    say(`it is ${state} and holds ${inputs.unfinished} unfinished inputs`);
  }
}

async function auditLedger(
  store: StateStore,
  id: string,
  found: {
    readonly ledger: Ledger;
    readonly inputs: InputTotals;
    readonly transcript: TranscriptTotals;
    readonly index: IndexTotals;
    readonly journal: JournalTotals;
  },
  report: Report,
): Promise<void> {
  const { ledger, inputs, transcript, index, journal } = found;
  const key = keys.session(id);
  const say = (invariant: string, what: string, counted: unknown, rows: unknown) =>
    report({ invariant, key, found: `it counts ${what} ${counted}, its rows say ${rows}` });
  const compare = (invariant: string, what: string, counted: unknown, rows: unknown) => {
    if (counted !== rows) say(invariant, what, counted, rows);
  };
  compare("I8", "the next input as", ledger.nextInput, inputs.end);
  compare("I8", "the next transcript entry as", ledger.nextTranscript, transcript.entries);
  compare("I8", "the next move as", ledger.nextMove, journal.end);
  compare("I15", "messages as", ledger.messages, transcript.messages);
  compare("I15", "the digest as", ledger.digest, transcript.digest);
  compare("I9", "kept keys of ended inputs as", ledger.endedKeys, index.endedKeys);
  compare("I20", "unfinished inputs as", ledger.unfinished, inputs.unfinished);
  compare(
    "I20",
    "the first active input as",
    ledger.firstActive,
    inputs.firstUnfinished ?? inputs.end,
  );
  // What ended is given up with its place, so the next one may be higher than the rows tell.
  if (ledger.nextPosition < inputs.nextPosition) {
    say("I8", "the next place on a lane as", ledger.nextPosition, inputs.nextPosition);
  }
  if (ledger.nextEndedKey < index.nextEndedKey) {
    say("I9", "the next ended key as", ledger.nextEndedKey, index.nextEndedKey);
  }
  const active = (await auditedRow(store, keys.active(id))) !== undefined;
  if (active !== inputs.unfinished > 0) {
    const says = active ? "is there" : "is missing";
    const text = `the row of active sessions ${says}, ${inputs.unfinished} inputs are unfinished`;
    report({ invariant: "I20", key: keys.active(id), found: text });
  }
}

/** Rows beside the sessions that no session stands for; how the others stand was judged there. */
async function auditStrays(store: StateStore, report: Report): Promise<void> {
  for await (const { key } of auditedRows(store, activeSessionsPrefix)) {
    if ((await auditedRow(store, keys.session(key.at(-1) ?? ""))) === undefined) {
      report({ invariant: "I20", key, found: "there is no such session" });
    }
  }
  const journals = journalKey(sessionsPrefix, 0).slice(0, -1);
  for await (const { id } of idsBelow(store, journals)) {
    const { records, next } = await store.list({ prefix: keys.session(id), limit: 1 });
    const isKnown = records.length > 0 || next !== undefined;
    if (isKnown || (await auditedRow(store, keys.session(id))) !== undefined) continue;
    const key = journalKey(keys.session(id), 0).slice(0, -1);
    report({ invariant: "I7", key, found: "moves are kept of a session that is not there" });
  }
}
