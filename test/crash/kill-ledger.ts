/** What the outside world saw in the kill test, and what the store says about it. */
import { readFileSync } from "node:fs";
import type { InputContext } from "../../machines/input.js";
import { type BoundaryReceipt, decodeInput, keys } from "../../src/sessions/records.js";
import type { Key, StateStore } from "../../src/store/index.js";

export interface LedgerLine {
  readonly place: number;
  /** A program `began` and `applied`; the worker said `done` when a waiter heard of the end. */
  readonly type: "began" | "applied" | "done";
  readonly inputId: string;
  readonly attempt: number;
  readonly turnId: string;
  readonly pid: number;
}

export function readLedger(path: string): readonly LedgerLine[] {
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line, place) => {
    const [type = "", inputId = "", attempt, turnId = "", pid] = line.split(" ");
    if (type !== "began" && type !== "applied" && type !== "done") {
      throw new Error(`line ${place + 1} of the ledger is not whole: ${line}`);
    }
    return { place, type, inputId, attempt: Number(attempt), turnId, pid: Number(pid) };
  });
}

/** An input as its row and the receipts have it. */
export interface StoredInput {
  readonly session: string;
  readonly id: string;
  readonly key: string | undefined;
  readonly phase: string;
  readonly attempts: number;
  readonly recoveries: number;
  readonly turnId: string | null;
  /** Turns whose receipts list it. */
  readonly receipts: readonly string[];
}

/** All inputs of some sessions, read from the rows alone. */
export async function readInputs(
  store: StateStore,
  sessions: readonly string[],
): Promise<readonly StoredInput[]> {
  const inputs: StoredInput[] = [];
  for (const session of sessions) {
    const receipts = new Map<string, string[]>();
    for await (const record of rows(store, keys.receipts(session, "x").slice(0, -1))) {
      const { inputIds, turnId } = record.value as unknown as BoundaryReceipt;
      for (const id of inputIds) receipts.set(id, [...(receipts.get(id) ?? []), turnId]);
    }
    for await (const record of rows(store, keys.inputs(session))) {
      const { id, header, snapshot } = decodeInput(record);
      const { attempts, recoveries, lastTurnId } = snapshot.context as unknown as InputContext;
      inputs.push({
        session,
        id,
        key: header.idempotencyKey,
        phase: String(snapshot.value),
        attempts,
        recoveries,
        turnId: lastTurnId,
        receipts: receipts.get(id) ?? [],
      });
    }
  }
  return inputs;
}

async function* rows(store: StateStore, prefix: Key) {
  let after: Key | undefined;
  do {
    const page = await store.list({ prefix, after, limit: 256 });
    yield* page.records;
    after = page.next;
  } while (after !== undefined);
}

/**
 * What contradicts "applied under the attempt that was committed, and by no later one": as text, for
 * one input and its lines of the ledger.
 */
export function contradictions(input: StoredInput, lines: readonly LedgerLine[]): string[] {
  const { id, attempts, recoveries, turnId } = input;
  const found: string[] = [];
  const began = lines.filter((line) => line.type === "began");
  const applied = lines.filter((line) => line.type === "applied");
  const done = lines.find((line) => line.type === "done");
  const committed = applied.filter((line) => line.turnId === turnId);
  if (committed.length !== 1 || committed[0]?.attempt !== attempts) {
    found.push(`${id}: its committed turn applied it ${committed.length} times`);
  }
  for (const line of began.filter((line) => line.attempt > attempts)) {
    found.push(`${id}: begun again, as attempt ${line.attempt}, after attempt ${attempts} counted`);
  }
  if (new Set(began.map((line) => line.attempt)).size !== began.length) {
    found.push(`${id}: one attempt was begun twice`);
  }
  // Every attempt but the last was cut off by a kill or a close; none was a failure.
  if (recoveries !== attempts - 1) found.push(`${id}: ${attempts} attempts, ${recoveries} cut off`);
  if (done === undefined) found.push(`${id}: nobody heard of its end`);
  else if ((committed[0]?.place ?? 0) > done.place) {
    found.push(`${id}: its end was told before it was applied`);
  }
  return found;
}
