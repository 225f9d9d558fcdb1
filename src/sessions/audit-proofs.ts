/** The audit of a session's turns, boundary receipts and transcript: what proves that work was done. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { InputContext } from "../../machines/input.js";
import { type TurnContext, turnMachine } from "../../machines/turn.js";
import { hasState } from "../kernel/xstate.js";
import type { JsonObject, StateStore } from "../store/port.js";
import { inputAt, type RunningTurn } from "./audit-inputs.js";
import { auditedRow, isObject, judgeRows, objectOf, type Report } from "./audit-rows.js";
import { type BoundaryReceipt, type InputRecord, keys, type TranscriptEntry } from "./records.js";

/** Turns: each agrees with its key, and only the session's own is in progress. */
export async function auditTurns(
  store: StateStore,
  id: string,
  options: { readonly session: RunningTurn | undefined; readonly staged: number },
  report: Report,
): Promise<void> {
  const { session, staged } = options;
  let isRunningSeen = false;
  const prefix = keys.turn(id, "x").slice(0, -1);
  await judgeRows(store, prefix, report, async ({ key, record }) => {
    if (record === undefined) return;
    const turn = turnOf(objectOf({ key, record }, report));
    if (turn === undefined) {
      return report({ invariant: "I3", key, found: "its snapshot is not one of the chart" });
    }
    const { context, isEnded } = turn;
    if (context.turnId !== key.at(-1) || context.sessionId !== id) {
      report({ invariant: "I2", key, found: "it names another turn or session" });
    }
    const isOurs = session?.turnId === context.turnId;
    isRunningSeen ||= isOurs;
    if (session !== undefined && isOurs === isEnded) {
      const found = isEnded
        ? "its session says that it is in progress, and it has ended"
        : "it is in progress and its session does not know it";
      report({ invariant: "I14", key, found });
    }
    if (isOurs) await auditHeld(store, id, { context, staged }, report);
    await auditBoundaries(store, id, turn, report);
  });
  if (session?.turnId !== undefined && session.turnId !== null && !isRunningSeen) {
    const key = keys.turn(id, session.turnId);
    report({ invariant: "I14", key, found: "the turn of its session is missing" });
  }
}

/** The turn in progress holds exactly the staged inputs, beside those that its boundaries consumed. */
async function auditHeld(
  store: StateStore,
  id: string,
  { context, staged }: { readonly context: TurnContext; readonly staged: number },
  report: Report,
): Promise<void> {
  const key = keys.turn(id, context.turnId);
  const say = (found: string) => report({ invariant: "I14", key, found });
  const consumed = await consumedBy(store, id, context);
  const held = context.inputIds.length - consumed.length;
  if (held !== staged) say(`it holds ${held} inputs and ${staged} are staged`);
  for (const [place, inputId] of context.inputIds.entries()) {
    if (place < consumed.length) continue;
    const input = await inputById(store, id, inputId);
    if (input === "unreadable") continue;
    const { lastTurnId } = (input?.snapshot.context ?? {}) as unknown as Partial<InputContext>;
    if (input?.snapshot.value !== "staged" || lastTurnId !== context.turnId) {
      say(`its input ${place} is not staged under it`);
    }
  }
}

interface AuditedTurn {
  readonly state: string;
  readonly context: TurnContext;
  readonly isEnded: boolean;
}

function turnOf(row: JsonObject | undefined): AuditedTurn | undefined {
  const snapshot = row?.snapshot;
  if (!isObject(snapshot) || !isObject(snapshot.context)) return undefined;
  if (!hasState(turnMachine, snapshot.value)) return undefined;
  const state = String(snapshot.value);
  const isEnded = state !== "staged" && state !== "executing";
  return { state, context: snapshot.context as unknown as TurnContext, isEnded };
}

/** The inputs that the receipts of a turn list, in their order. */
async function consumedBy(
  store: StateStore,
  id: string,
  { turnId, boundaries }: TurnContext,
): Promise<readonly unknown[]> {
  const consumed: unknown[] = [];
  for (let sequence = 0; sequence < boundaries; sequence += 1) {
    const receipt = await auditedRow(store, keys.receipt(id, turnId, sequence));
    if (receipt === "unreadable") continue;
    // A count that is wrong must not be counted through.
    if (receipt === undefined) break;
    const { inputIds } = receipt.value as unknown as BoundaryReceipt;
    if (Array.isArray(inputIds)) consumed.push(...inputIds);
  }
  return consumed;
}

/** A turn has the receipts that it counts; one that is completed consumed all that it held. */
async function auditBoundaries(
  store: StateStore,
  id: string,
  { state, context }: AuditedTurn,
  report: Report,
): Promise<void> {
  const { turnId, boundaries, inputIds } = context;
  for (let sequence = 0; sequence < boundaries; sequence += 1) {
    const key = keys.receipt(id, turnId, sequence);
    const receipt = await auditedRow(store, key);
    if (receipt === "unreadable") return;
    if (receipt === undefined) {
      const found = `the turn counts ${boundaries} boundaries, this is missing`;
      return report({ invariant: "I16", key, found });
    }
  }
  const consumed = await consumedBy(store, id, context);
  if (state !== "completed" && state !== "callbackPending") return;
  if (!isDeepStrictEqual(consumed, inputIds)) {
    const found = "it is completed, and its receipts list other inputs than it held";
    report({ invariant: "I15", key: keys.turn(id, turnId), found });
  }
}

/** Receipts: contiguous per turn, and each lists only inputs that name it as their boundary. */
export async function auditReceipts(
  store: StateStore,
  id: string,
  report: Report,
): Promise<number> {
  let receipts = 0;
  let last: { readonly turnId: string; readonly sequence: number } | undefined;
  const prefix = keys.receipts(id, "x").slice(0, -1);
  await judgeRows(store, prefix, report, async ({ key, record }) => {
    const turnId = key.at(-2) ?? "";
    const sequence = Number(key.at(-1));
    const expected = last?.turnId === turnId ? last.sequence + 1 : 0;
    if (sequence !== expected) {
      report({ invariant: "I16", key, found: `receipt ${expected} of its turn is missing` });
    }
    last = { turnId, sequence };
    receipts += 1;
    const row = record === undefined ? undefined : objectOf({ key, record }, report);
    if (row === undefined) return;
    if (row.turnId !== turnId || row.sequence !== sequence) {
      report({ invariant: "I2", key, found: "it names another turn or sequence than its key" });
    }
    await auditListed(store, id, row as unknown as BoundaryReceipt, (invariant, found) =>
      report({ invariant, key, found }),
    );
    const turn = await auditedRow(store, keys.turn(id, turnId));
    if (turn === undefined) report({ invariant: "I15", key, found: "its turn is missing" });
    else if (turn !== "unreadable") {
      const boundaries = turnOf(isObject(turn.value) ? turn.value : undefined)?.context.boundaries;
      if (boundaries !== undefined && boundaries <= sequence) {
        report({ invariant: "I16", key, found: `its turn counts ${boundaries} boundaries` });
      }
    }
  });
  return receipts;
}

async function auditListed(
  store: StateStore,
  id: string,
  receipt: BoundaryReceipt,
  say: (invariant: string, found: string) => void,
): Promise<void> {
  const { inputIds, turnId, sequence } = receipt;
  if (!Array.isArray(inputIds) || inputIds.length === 0) return say("I15", "it lists no inputs");
  if (new Set(inputIds).size !== inputIds.length) say("I16", "it lists an input twice");
  for (const [place, inputId] of inputIds.entries()) {
    const input = await inputById(store, id, inputId);
    if (input === "unreadable") continue;
    if (input === undefined) {
      say("I15", `its input ${place} is not known`);
      continue;
    }
    const { lastTurnId, lastBoundarySequence } = input.snapshot.context as unknown as InputContext;
    const phase = String(input.snapshot.value);
    if (phase !== "consumed" && phase !== "applied" && phase !== "appliedPendingConsumption") {
      say("I15", `its input ${place} (number ${input.sequence}) is ${phase}`);
    } else if (
      lastTurnId !== turnId ||
      (phase !== "applied" && lastBoundarySequence !== sequence)
    ) {
      say("I16", `its input ${place} (number ${input.sequence}) names another boundary`);
    }
  }
}

async function inputById(
  store: StateStore,
  id: string,
  inputId: unknown,
): Promise<InputRecord | undefined | "unreadable"> {
  if (typeof inputId !== "string" || inputId === "") return undefined;
  const index = await auditedRow(store, keys.inputId(id, inputId));
  if (index === "unreadable") return index;
  return inputAt(store, id, isObject(index?.value) ? index.value.sequence : undefined);
}

/** What a transcript adds up to. */
export interface TranscriptTotals {
  readonly entries: number;
  readonly messages: number;
  readonly digest: string;
}

/** The transcript: contiguous from 0, its digest chained anew and compared with each receipt on the way. */
export async function auditTranscript(
  store: StateStore,
  id: string,
  report: Report,
): Promise<TranscriptTotals> {
  let entries = 0;
  let messages = 0;
  let digest = "";
  await judgeRows(store, keys.transcript(id), report, async ({ key, record }) => {
    const sequence = Number(key.at(-1));
    if (sequence !== entries) {
      report({ invariant: "I8", key, found: `transcript entry ${entries} is missing` });
    }
    entries = sequence + 1;
    const row = record === undefined ? undefined : objectOf({ key, record }, report);
    if (row === undefined) return;
    const entry = row as unknown as TranscriptEntry;
    if (!Array.isArray(entry.messages)) {
      return report({ invariant: "I3", key, found: "it holds no messages" });
    }
    for (const message of entry.messages) {
      digest = createHash("sha256").update(digest).update(JSON.stringify(message)).digest("hex");
      messages += 1;
    }
    // Messages that consumed no input have no receipt.
    if (entry.receipt === null) return;
    const receipt = await auditedRow(store, keys.receipt(id, entry.turnId, entry.receipt));
    if (receipt === "unreadable") return;
    if (receipt === undefined) {
      return report({ invariant: "I15", key, found: "the receipt of its boundary is missing" });
    }
    const proof = receipt.value as unknown as BoundaryReceipt;
    if (proof.digest !== digest || proof.messages !== messages) {
      report({
        invariant: "I15",
        key,
        found: "the receipt of its boundary proves another conversation",
      });
    }
  });
  return { entries, messages, digest };
}
