/**
 * The input rows of one session as recovery reads them: from the first active one on, every row
 * checked, nothing decided and nothing written.
 */
import { CorruptionError } from "../errors.js";
import { PAGE_MAX } from "../limits.js";
import { sequenceSegment } from "../store/keys.js";
import type { JsonValue, StateStore, StoredRecord } from "../store/port.js";
import {
  corrupt,
  decodeInput,
  hasEnded,
  type InputRecord,
  isForgotten,
  keys,
  type SessionRecord,
} from "./records.js";

export interface StoredInput {
  readonly record: StoredRecord;
  readonly input: InputRecord;
}

export interface StoredInputs {
  readonly rows: readonly StoredInput[];
  /** Ephemeral inputs of a process that is gone. */
  readonly forgotten: readonly InputRecord[];
  readonly nextInput: number;
}

/** @throws CorruptionError a row is missing or is none; StoreError as reading does */
export async function readInputs(
  id: string,
  session: SessionRecord | undefined,
  list: StateStore["list"],
): Promise<StoredInputs> {
  const rows: StoredInput[] = [];
  const forgotten: InputRecord[] = [];
  const first = session?.ledger.firstActive ?? 0;
  let after = first === 0 ? undefined : keys.input(id, first - 1);
  let expected = first;
  do {
    const page = await list({ prefix: keys.inputs(id), after, limit: PAGE_MAX });
    for (const record of page.records) {
      // Rows that another program wrote begin where it likes, and are contiguous from there.
      if (session === undefined && rows.length + forgotten.length === 0) {
        expected = Number(record.key[3]);
      }
      if (record.key[3] !== sequenceSegment(expected)) {
        throw corrupt(record, `input ${expected} of the session is missing before it`);
      }
      expected += 1;
      // Before any other check: an ephemeral input does not outlive its process.
      if (isForgotten(record)) continue;
      if (isEphemeral(record.value)) {
        forgotten.push(record.value as unknown as InputRecord);
        continue;
      }
      rows.push({ record, input: decodeInput(record) });
    }
    after = page.next;
  } while (after !== undefined);
  if (session !== undefined && expected !== session.ledger.nextInput) {
    throw new CorruptionError(
      `Session ${id}`,
      `its inputs end at ${expected}, the session counts ${session.ledger.nextInput}`,
    );
  }
  return { rows, forgotten, nextInput: expected };
}

function isEphemeral(value: JsonValue): boolean {
  const header = (value as { readonly header?: { readonly durability?: unknown } } | null)?.header;
  return header?.durability === "ephemeral";
}

export function isActive({ input }: StoredInput): boolean {
  return !hasEnded(input);
}

/** A session that says it is over while its inputs are not: one of the two is wrong. */
export function requireNoConflict(
  stored: StoredRecord | undefined,
  session: SessionRecord | undefined,
  rows: readonly StoredInput[],
): void {
  const value = session?.snapshot.value;
  if (stored === undefined || (value !== "stopped" && value !== "destroyed")) return;
  const active = rows.filter(isActive).length;
  if (active > 0) {
    throw corrupt(
      stored,
      `runtime-state projection '${value}' conflicts with ${active} active inputs`,
    );
  }
}
