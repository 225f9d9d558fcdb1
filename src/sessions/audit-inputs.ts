/**
 * The audit of a session's inputs. It holds one row at a time and looks others up
 * by key, so that its memory does not grow with the session.
 */
import { isDeepStrictEqual } from "node:util";
import { type InputContext, inputMachine } from "../../machines/input.js";
import { encodeSnapshot, restoreSnapshot } from "../kernel/xstate.js";
import type { StateStore } from "../store/port.js";
import { auditedRow, isObject, judgeRows, type Report } from "./audit-rows.js";
import {
  type BoundaryReceipt,
  decodeInput,
  type InputRecord,
  isForgotten,
  type KeyRecord,
  keys,
} from "./records.js";

/** What the session's own record is compared with. */
export interface InputTotals {
  inputs: number;
  unfinished: number;
  /** Inputs in the hands of the session's turn. */
  staged: number;
  firstUnfinished: number | undefined;
  /** The sequence after the last one. */
  end: number;
  /** The place after the last one that an unfinished input has on its lane. */
  nextPosition: number;
}

/** The state of the session as far as its inputs must agree with it. */
export interface RunningTurn {
  readonly isRunning: boolean;
  readonly turnId: string | null;
}

const ended = new Set(["consumed", "superseded", "coalesced", "abandoned"]);

export async function auditInputs(
  store: StateStore,
  id: string,
  session: RunningTurn | undefined,
  report: Report,
): Promise<InputTotals> {
  const totals: InputTotals = {
    inputs: 0,
    unfinished: 0,
    staged: 0,
    firstUnfinished: undefined,
    end: 0,
    nextPosition: 0,
  };
  let expected: number | undefined;
  await judgeRows(store, keys.inputs(id), report, async ({ key, record }) => {
    const sequence = Number(key.at(-1));
    if (!Number.isSafeInteger(sequence)) {
      return report({ invariant: "I2", key, found: "its key has no sequence" });
    }
    if (expected !== undefined && sequence !== expected) {
      report({ invariant: "I8", key, found: `input ${expected} before it is missing` });
    }
    expected = sequence + 1;
    totals.end = expected;
    totals.inputs += 1;
    if (record === undefined || isForgotten(record)) return;
    await auditInput(store, id, { input: decodeInput(record), session, totals }, report);
  });
  return totals;
}

async function auditInput(
  store: StateStore,
  id: string,
  seen: {
    readonly input: InputRecord;
    readonly session: RunningTurn | undefined;
    readonly totals: InputTotals;
  },
  report: Report,
): Promise<void> {
  const { input, session, totals } = seen;
  const key = keys.input(id, input.sequence);
  const say = (invariant: string, found: string) => report({ invariant, key, found });
  const phase = String(input.snapshot.value);
  const context = input.snapshot.context as unknown as InputContext;
  const index = await auditedRow(store, keys.inputId(id, input.id));
  const isPointedAt =
    index === "unreadable" || (isObject(index?.value) && index.value.sequence === input.sequence);
  // A session without a record was never opened here, and gets its indexes when it is.
  if (!isPointedAt && session !== undefined)
    say("I9", "the index of input ids does not point to it");
  if (input.header?.id !== input.id) say("I2", "its header names another input");
  const isEnded = ended.has(phase);
  if (isEnded !== (context.outcome !== null)) {
    say("I3", `it is ${phase} and its outcome is ${context.outcome === null ? "open" : "known"}`);
  }
  if (!isEnded) {
    totals.unfinished += 1;
    totals.firstUnfinished ??= input.sequence;
    totals.nextPosition = Math.max(totals.nextPosition, input.position + 1);
  }
  if (phase === "staged") {
    totals.staged += 1;
    if (session !== undefined && session.turnId !== context.lastTurnId) {
      say("I14", "it is staged under a turn that is not the one of its session");
    }
  }
  auditLife(input, context, say);
  if (session !== undefined) await auditKeyOf(store, id, { input, isEnded }, say);
  if (phase === "consumed" && context.lastTurnId !== null) {
    await auditReceiptOf(store, id, { input, context }, say);
  }
}

type Say = (invariant: string, found: string) => void;

/** What an input says of its own life: every step connected, and no more attempts than it may have. */
function auditLife({ snapshot }: InputRecord, context: InputContext, say: Say): void {
  const { attempts, attemptsMax, recoveries, history } = context;
  const restored = encodeSnapshot(restoreSnapshot(inputMachine, snapshot));
  if (!isDeepStrictEqual(restored, snapshot)) say("I3", "its snapshot is not one of its chart");
  // An attempt that a crash cut off is not the input's fault.
  if (attempts - recoveries > Math.max(1, attemptsMax)) {
    say(
      "I17",
      `it was given to ${attempts} turns, ${recoveries} cut off, of at most ${attemptsMax}`,
    );
  }
  if (!Array.isArray(history) || history.length === 0) return;
  const isConnected = history.every((move, at) => at === 0 || history[at - 1]?.to === move.from);
  if (!isConnected) say("I13", "its history leaves out a step");
  if (history.at(-1)?.to !== snapshot.value) say("I13", "its history leads to another state");
  // Of a very long life the first steps are not kept.
  if (history[0]?.from !== inputMachine.config.initial) return;
  const steps = (event: string) => history.filter((move) => move.event === event).length;
  if (steps("stage") !== attempts) {
    say("I17", `it counts ${attempts} attempts, its history ${steps("stage")}`);
  }
  if (steps("requeue") !== recoveries) {
    say("I17", `it counts ${recoveries} recoveries, its history ${steps("requeue")}`);
  }
}

/** The key of an unfinished input names it; that of an ended one may be forgotten or taken anew. */
async function auditKeyOf(
  store: StateStore,
  id: string,
  { input, isEnded }: { readonly input: InputRecord; readonly isEnded: boolean },
  say: Say,
): Promise<void> {
  const { idempotencyKey } = input.header;
  if (idempotencyKey === undefined) return;
  const row = await auditedRow(store, keys.idempotency(id, idempotencyKey));
  if (row === "unreadable") return;
  if (row === undefined) {
    if (!isEnded) say("I10", "its idempotency key has no row");
    return;
  }
  const named = row.value as unknown as KeyRecord;
  if (named.sequence === input.sequence) {
    if ((named.endedAtMs !== undefined) !== isEnded) {
      say("I10", "the row of its idempotency key disagrees about its end");
    }
    return;
  }
  const other = await auditedRow(store, keys.input(id, named.sequence));
  if (other === undefined || other === "unreadable") return;
  const wasFree = isEnded && input.updatedAt <= decodeInput(other).createdAt;
  if (!wasFree) say("I10", `its idempotency key names input ${named.sequence} as well`);
}

async function auditReceiptOf(
  store: StateStore,
  id: string,
  { input, context }: { readonly input: InputRecord; readonly context: InputContext },
  say: Say,
): Promise<void> {
  const { lastTurnId, lastBoundarySequence } = context;
  if (lastTurnId === null || lastBoundarySequence === null) {
    return say("I15", "it is consumed and names no boundary");
  }
  const row = await auditedRow(store, keys.receipt(id, lastTurnId, lastBoundarySequence));
  if (row === "unreadable") return;
  if (row === undefined)
    return say("I15", "it is consumed and the receipt of its boundary is missing");
  const { inputIds } = row.value as unknown as BoundaryReceipt;
  if (!Array.isArray(inputIds) || !inputIds.includes(input.id)) {
    say("I15", "it is consumed and the receipt of its boundary does not list it");
  }
}

/** The input at a sequence; `undefined` where there is none that can be one. */
export async function inputAt(
  store: StateStore,
  id: string,
  sequence: unknown,
): Promise<InputRecord | undefined | "unreadable"> {
  if (!Number.isSafeInteger(sequence) || (sequence as number) < 0) return undefined;
  const record = await auditedRow(store, keys.input(id, sequence as number));
  if (record === undefined || record === "unreadable") return record;
  try {
    return decodeInput(record);
  } catch {
    // Reported where the row itself is audited.
    return "unreadable";
  }
}
