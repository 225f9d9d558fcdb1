/**
 * The records of a session: their keys, their shapes, and the check of what comes back from the
 * store. Reading never repairs; a record that is not what it should be is corruption.
 */
import { type InputContext, inputMachine } from "../../machines/input.js";
import { type SessionContext, sessionMachine } from "../../machines/session.js";
import type { TurnBoundary } from "../../machines/turn.js";
import { CorruptionError } from "../errors.js";
import { type AnyStateMachine, hasState, type StoredSnapshot } from "../kernel/xstate.js";
import { sequenceSegment, showKey } from "../store/keys.js";
import type { JsonObject, JsonValue, Key, StoredRecord } from "../store/port.js";
import type { InputHeader, InputPayload } from "./input.js";
import type { Policy, SemanticsStamp } from "./policy.js";

export const sessionsPrefix: Key = ["session"];
export const activeSessionsPrefix: Key = ["active-session"];

export const keys = {
  session: (id: string): Key => ["session", id],
  active: (id: string): Key => ["active-session", id],
  inputs: (id: string): Key => ["session", id, "input"],
  input: (id: string, sequence: number): Key => ["session", id, "input", sequenceSegment(sequence)],
  inputId: (id: string, inputId: string): Key => ["session", id, "inputId", inputId],
  idempotency: (id: string, key: string): Key => ["session", id, "key", key],
  /** Keys of ended inputs in the order of their end, so that the oldest leave first. */
  endedKeys: (id: string): Key => ["session", id, "endedKey"],
  endedKey: (id: string, sequence: number): Key => [
    "session",
    id,
    "endedKey",
    sequenceSegment(sequence),
  ],
  turn: (id: string, turnId: string): Key => ["session", id, "turn", turnId],
  receipts: (id: string, turnId: string): Key => ["session", id, "receipt", turnId],
  receipt: (id: string, turnId: string, sequence: number): Key => [
    "session",
    id,
    "receipt",
    turnId,
    sequenceSegment(sequence),
  ],
  /** Context that a host appended, by its key. */
  context: (id: string, key: string): Key => ["session", id, "context", key],
  transcript: (id: string): Key => ["session", id, "transcript"],
  transcriptEntry: (id: string, sequence: number): Key => [
    "session",
    id,
    "transcript",
    sequenceSegment(sequence),
  ],
} as const;

/** A message of a conversation. Roles and content are the executor's matter. */
export type Message = JsonObject;

/** Counts of a session that are no states: they go on across restarts. */
export interface Ledger {
  /** Sequence of the next input. */
  readonly nextInput: number;
  /** Place of the next input on its lane; a failed batch that goes behind others takes new ones. */
  readonly nextPosition: number;
  /** No input below this sequence is active: recovery reads from here. */
  readonly firstActive: number;
  /** Inputs that have not ended. */
  readonly unfinished: number;
  readonly nextMove: number;
  readonly nextTranscript: number;
  readonly messages: number;
  /** Digest of the conversation: SHA-256 chained message by message, in hex. */
  readonly digest: string;
  /** Keys of ended inputs that are kept. */
  readonly endedKeys: number;
  readonly nextEndedKey: number;
}

export const emptyLedger: Ledger = Object.freeze({
  nextInput: 0,
  nextPosition: 0,
  firstActive: 0,
  unfinished: 0,
  nextMove: 0,
  nextTranscript: 0,
  messages: 0,
  digest: "",
  endedKeys: 0,
  nextEndedKey: 0,
});

export interface SessionRecord {
  readonly snapshot: StoredSnapshot;
  readonly ledger: Ledger;
  readonly metadata: JsonObject;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface InputRecord {
  readonly id: string;
  readonly sequence: number;
  readonly position: number;
  readonly snapshot: StoredSnapshot;
  readonly header: InputHeader;
  readonly payload: InputPayload;
  readonly policy: Policy;
  readonly stamp: SemanticsStamp;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface TurnRecord {
  readonly snapshot: StoredSnapshot;
  readonly result?: JsonValue;
}

/** Proof of what a turn consumed. */
export interface BoundaryReceipt {
  readonly turnId: string;
  readonly sequence: number;
  readonly boundary: TurnBoundary;
  /** In the order in which the turn held them. */
  readonly inputIds: readonly string[];
  readonly digest: string;
  readonly messages: number;
  readonly at: string;
}

export interface TranscriptEntry {
  readonly turnId: string;
  /** Sequence of the receipt in the same commit; `null` for messages that consumed no input. */
  readonly receipt: number | null;
  readonly messages: readonly Message[];
}

/** What the row of an idempotency key says. The last two are there once its input has ended. */
export interface KeyRecord {
  readonly inputId: string;
  readonly sequence: number;
  readonly digest: string;
  readonly endedAtMs?: number;
  /** Its place in the order of ends. */
  readonly endedSequence?: number;
}

export interface EndedKey {
  readonly key: string;
  readonly endedAtMs: number;
  readonly sequence: number;
}

/**
 * `attached` belongs to a process and is written as `idle`, and a registration as `queuing`: what
 * another process reads has no executor.
 */
export function encodeSessionSnapshot(stored: StoredSnapshot): StoredSnapshot {
  const context = stored.context as unknown as SessionContext;
  return {
    value: stored.value === "attached" ? "idle" : stored.value,
    context: {
      ...context,
      registration: "queuing",
      stateBeforeTurn: context.stateBeforeTurn === "attached" ? "idle" : context.stateBeforeTurn,
    } as unknown as JsonValue,
  };
}

export function decodeSession(record: StoredRecord): SessionRecord {
  const value = requireObject(record);
  requireSnapshot(record, value.snapshot, sessionMachine);
  const { ledger } = value;
  if (!isObject(ledger)) throw corrupt(record, "the ledger is missing");
  for (const name of Object.keys(emptyLedger)) {
    const found = ledger[name];
    const isRight = name === "digest" ? typeof found === "string" : isCount(found);
    if (!isRight) throw corrupt(record, `ledger ${name} is not valid`);
  }
  const context = (value.snapshot as unknown as { context: SessionContext }).context;
  if (context.sessionId !== record.key[1]) throw corrupt(record, "it names another session");
  return value as unknown as SessionRecord;
}

/**
 * An input row. Ended ones need no more than their snapshot; others need payload, stamp and policy,
 * looked for in this order: the stamp before the policy.
 */
export function decodeInput(record: StoredRecord): InputRecord {
  const value = requireObject(record);
  requireSnapshot(record, value.snapshot, inputMachine);
  if (typeof value.id !== "string" || !isCount(value.sequence)) {
    throw corrupt(record, "id or sequence is missing");
  }
  if (record.key[3] !== sequenceSegment(value.sequence)) {
    throw corrupt(record, "its sequence is not that of its key");
  }
  const context = (value.snapshot as unknown as { context: InputContext }).context;
  if (context.inputId !== value.id) throw corrupt(record, "its snapshot is of another input");
  return value as unknown as InputRecord;
}

/** Whether a stored input is at its end: its outcome is written with its last move. */
export function hasEnded({ snapshot }: InputRecord): boolean {
  return (snapshot.context as unknown as InputContext).outcome !== null;
}

/** An ephemeral input of a process that is gone: its row holds its place and no more. */
export function isForgotten({ value }: StoredRecord): boolean {
  return isObject(value) && value.isForgotten === true;
}

export function requireLiveParts(record: StoredRecord, input: InputRecord): void {
  if (!isObject(input.payload)) throw corrupt(record, "missing payload");
  if (!isObject(input.stamp)) throw corrupt(record, "missing runtime execution semantics stamp");
  if (!isObject(input.policy)) throw corrupt(record, "missing policy");
}

export function corrupt(record: StoredRecord, found: string, cause?: unknown): CorruptionError {
  return new CorruptionError(`Record ${showKey(record.key)}`, found, undefined, cause);
}

function requireSnapshot(
  record: StoredRecord,
  snapshot: JsonValue | undefined,
  machine: AnyStateMachine,
): void {
  if (!isObject(snapshot) || !isObject(snapshot.context)) {
    throw corrupt(record, "the snapshot is missing");
  }
  if (!hasState(machine, snapshot.value)) {
    throw corrupt(record, "its state is not one of the chart");
  }
}

function requireObject(record: StoredRecord): JsonObject {
  if (!isObject(record.value)) throw corrupt(record, "the value is not an object");
  return record.value;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
