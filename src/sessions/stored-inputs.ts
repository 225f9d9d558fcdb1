/**
 * The input rows of one session as recovery and recycling read them: from the first active one on,
 * every row checked, nothing decided and nothing written.
 */
import { CorruptionError, show } from "../errors.js";
import { PAGE_MAX } from "../limits.js";
import { sequenceSegment } from "../store/keys.js";
import type { JsonValue, StateStore, StoredRecord } from "../store/port.js";
import { type InputSurroundings, LiveInput } from "./live-input.js";
import { type SemanticsStamp, semanticsStamp } from "./policy.js";
import {
  corrupt,
  decodeInput,
  hasEnded,
  type InputRecord,
  isForgotten,
  keys,
  type Ledger,
  requireLiveParts,
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

/**
 * Reads from the first input that the ledger knows as active; without a ledger, from the first row.
 * @throws CorruptionError a row is missing or is none; StoreError as reading does
 */
export async function readInputs(
  id: string,
  ledger: Ledger | undefined,
  list: StateStore["list"],
): Promise<StoredInputs> {
  const rows: StoredInput[] = [];
  const forgotten: InputRecord[] = [];
  const first = ledger?.firstActive ?? 0;
  let after = first === 0 ? undefined : keys.input(id, first - 1);
  let expected = first;
  do {
    const page = await list({ prefix: keys.inputs(id), after, limit: PAGE_MAX });
    for (const record of page.records) {
      // Rows that another program wrote begin where it likes, and are contiguous from there.
      if (ledger === undefined && rows.length + forgotten.length === 0) {
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
  if (ledger !== undefined && expected !== ledger.nextInput) {
    throw new CorruptionError(
      `Session ${show(id)}`,
      `its inputs end at ${expected}, the session counts ${ledger.nextInput}`,
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

/**
 * The active inputs among checked rows.
 * @throws CorruptionError a part that an active input needs is missing, or contradicts its policy
 */
export function restoreInputs(
  rows: readonly StoredInput[],
  options: InputSurroundings,
): readonly LiveInput[] {
  return rows.filter(isActive).map(({ record, input }) => {
    requireLiveParts(record, input);
    if (!sameStamp(semanticsStamp(input.policy, input.payload), input.stamp)) {
      throw corrupt(record, "its execution semantics stamp is not the one of its policy");
    }
    return LiveInput.restore(input, options);
  });
}

function sameStamp(a: SemanticsStamp, b: SemanticsStamp): boolean {
  return (
    a.boundary === b.boundary &&
    a.execution === b.execution &&
    a.terminalIntent === b.terminalIntent
  );
}
