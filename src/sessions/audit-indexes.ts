/** The audit of a session's indexes, by input id and by idempotency key, from their own side. */
import type { StateStore } from "../store/port.js";
import { inputAt } from "./audit-inputs.js";
import { auditedRow, isObject, judgeRows, objectOf, type Report } from "./audit-rows.js";
import { payloadDigest } from "./input.js";
import { type KeyRecord, keys } from "./records.js";

/** What the session's own record is compared with. */
export interface IndexTotals {
  /** Keys of ended inputs that are kept. */
  readonly endedKeys: number;
  /** The place after the last of them. */
  readonly nextEndedKey: number;
}

export async function auditIndexes(
  store: StateStore,
  id: string,
  report: Report,
): Promise<IndexTotals> {
  await auditInputIds(store, id, report);
  await auditKeys(store, id, report);
  return auditEndedKeys(store, id, report);
}

async function auditInputIds(store: StateStore, id: string, report: Report): Promise<void> {
  const prefix = keys.inputId(id, "x").slice(0, -1);
  await judgeRows(store, prefix, report, async ({ key, record }) => {
    const row = record === undefined ? undefined : objectOf({ key, record }, report);
    if (row === undefined) return;
    const input = await inputAt(store, id, row.sequence);
    if (input !== "unreadable" && input?.id !== key.at(-1)) {
      report({ invariant: "I9", key, found: "it points to no input of this id" });
    }
  });
}

async function auditKeys(store: StateStore, id: string, report: Report): Promise<void> {
  const prefix = keys.idempotency(id, "x").slice(0, -1);
  await judgeRows(store, prefix, report, async ({ key, record }) => {
    const row = record === undefined ? undefined : objectOf({ key, record }, report);
    if (row === undefined) return;
    const { endedSequence } = row;
    if (typeof endedSequence === "number") {
      const ended = await auditedRow(store, keys.endedKey(id, endedSequence));
      const isListed =
        ended === "unreadable" || (isObject(ended?.value) && ended.value.key === key.at(-1));
      if (!isListed) {
        report({ invariant: "I9", key, found: "it has ended, and is not listed among ended keys" });
      }
    }
    const input = await inputAt(store, id, row.sequence);
    if (input === "unreadable") return;
    const isRight = input?.id === row.inputId && input?.header.idempotencyKey === key.at(-1);
    if (!isRight) report({ invariant: "I9", key, found: "it points to no input with this key" });
    else if (input !== undefined && payloadDigest(input.payload) !== row.digest) {
      report({ invariant: "I10", key, found: "its digest is not that of the payload" });
    }
  });
}

/** Keys that were taken anew leave gaps, so only each row by itself is judged. */
async function auditEndedKeys(store: StateStore, id: string, report: Report): Promise<IndexTotals> {
  let endedKeys = 0;
  let nextEndedKey = 0;
  await judgeRows(store, keys.endedKeys(id), report, async ({ key, record }) => {
    endedKeys += 1;
    nextEndedKey = Number(key.at(-1)) + 1;
    const row = record === undefined ? undefined : objectOf({ key, record }, report);
    if (row === undefined) return;
    const named = await auditedRow(store, keys.idempotency(id, String(row.key)));
    if (named === "unreadable") return;
    const back = named?.value as unknown as KeyRecord | undefined;
    if (back?.endedSequence !== Number(key.at(-1))) {
      report({ invariant: "I9", key, found: "the row of its idempotency key does not point back" });
    }
  });
  return { endedKeys, nextEndedKey };
}
