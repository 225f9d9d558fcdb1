/**
 * The audit of all sessions of a store: what must hold between the records of each. It streams, so
 * its memory is constant, and it reads only; a finding never ends it. Nobody may write meanwhile.
 */
import type { SessionContext } from "../../machines/session.js";
import { isHoldfastError } from "../errors.js";
import { journalKey } from "../kernel/journal.js";
import type { StateStore, StoredRecord } from "../store/port.js";
import { UnreadableRecord } from "../store/record.js";
import { auditIndexes, auditInputs, type InputTotals } from "./audit-inputs.js";
import {
  auditReceipts,
  auditTranscript,
  auditTurns,
  type TranscriptTotals,
} from "./audit-proofs.js";
import { auditedRow, auditedRows, type Finding, type Report } from "./audit-rows.js";
import {
  activeSessionsPrefix,
  decodeSession,
  keys,
  type Ledger,
  type SessionRecord,
} from "./records.js";
import { type StoredSessionId, sessionIds } from "./session-ids.js";

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
  for await (const { id, record } of readableSessions(store)) {
    await auditSession(store, { id, record }, { report, counts });
  }
  await auditActive(store, report);
  return counts;
}

/** Goes on behind a session whose own record is unreadable; its rows are looked at all the same. */
async function* readableSessions(store: StateStore): AsyncGenerator<StoredSessionId> {
  let after: string | undefined;
  for (;;) {
    try {
      for await (const session of sessionIds(store, after)) {
        yield session;
        after = session.id;
      }
      return;
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      after = error.recordKey[1] ?? "";
      yield { id: after, record: undefined };
    }
  }
}

async function auditSession(
  store: StateStore,
  { id, record }: StoredSessionId,
  { report, counts }: { readonly report: Report; readonly counts: SessionCounts },
): Promise<void> {
  const session = record === undefined ? undefined : sessionOf(record, report);
  const context = session?.snapshot.context as unknown as SessionContext | undefined;
  const running =
    session === undefined || context === undefined
      ? undefined
      : { isRunning: session.snapshot.value === "running", turnId: context.turnId };
  const inputs = await auditInputs(store, id, running, report);
  await auditTurns(store, id, { session: running, staged: inputs.staged }, report);
  const receipts = await auditReceipts(store, id, report);
  const transcript = await auditTranscript(store, id, report);
  counts.sessions += 1;
  counts.inputs += inputs.inputs;
  counts.unfinished += inputs.unfinished;
  counts.receipts += receipts;
  counts.messages += transcript.messages;
  if (session === undefined || context === undefined) return;
  const endedKeys = await auditIndexes(store, id, report);
  auditState(session, context, inputs, report);
  await auditLedger(store, id, { ledger: session.ledger, inputs, transcript, endedKeys }, report);
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
    readonly endedKeys: number;
  },
  report: Report,
): Promise<void> {
  const { ledger, inputs, transcript, endedKeys } = found;
  const key = keys.session(id);
  const compare = (invariant: string, what: string, counted: unknown, rows: unknown) => {
    if (counted !== rows) {
      report({ invariant, key, found: `it counts ${what} ${counted}, its rows say ${rows}` });
    }
  };
  compare("I8", "the next input as", ledger.nextInput, inputs.end);
  compare("I8", "the next transcript entry as", ledger.nextTranscript, transcript.entries);
  compare("I8", "the next move as", ledger.nextMove, await journalEnd(store, id, report));
  compare("I15", "messages as", ledger.messages, transcript.messages);
  compare("I15", "the digest as", ledger.digest, transcript.digest);
  compare("I9", "kept keys of ended inputs as", ledger.endedKeys, endedKeys);
  compare("I20", "unfinished inputs as", ledger.unfinished, inputs.unfinished);
  compare(
    "I20",
    "the first active input as",
    ledger.firstActive,
    inputs.firstUnfinished ?? inputs.end,
  );
  const active = (await auditedRow(store, keys.active(id))) !== undefined;
  if (active !== inputs.unfinished > 0) {
    const says = active ? "is there" : "is missing";
    const text = `the row of active sessions ${says}, ${inputs.unfinished} inputs are unfinished`;
    report({ invariant: "I20", key: keys.active(id), found: text });
  }
}

/** The kept moves are contiguous up to the last one. */
async function journalEnd(store: StateStore, id: string, report: Report): Promise<number> {
  let expected: number | undefined;
  const prefix = journalKey(keys.session(id), 0).slice(0, -1);
  for await (const { key } of auditedRows(store, prefix)) {
    const sequence = Number(key.at(-1));
    if (expected !== undefined && sequence !== expected) {
      report({ invariant: "I8", key, found: `move ${expected} before it is missing` });
    }
    expected = sequence + 1;
  }
  return expected ?? 0;
}

/** Every row of active sessions belongs to a session with a record; how it stands was judged there. */
async function auditActive(store: StateStore, report: Report): Promise<void> {
  for await (const { key } of auditedRows(store, activeSessionsPrefix)) {
    if ((await auditedRow(store, keys.session(key.at(-1) ?? ""))) === undefined) {
      report({ invariant: "I20", key, found: "there is no such session" });
    }
  }
}
