/** Rows as another process, or an older one, may have left them: written past the sessions' code. */
import { inputMachine } from "../../machines/input.js";
import { encodeSnapshot, initialSnapshot, step } from "../../src/kernel/xstate.js";
import { decidePolicy, semanticsStamp } from "../../src/sessions/policy.js";
import { type InputRecord, keys } from "../../src/sessions/records.js";
import type { JsonValue, Key } from "../../src/store/index.js";
import type { World } from "../world.js";

export const AT = "2026-01-01T00:00:00.000Z";

type InputStep = Parameters<typeof step<typeof inputMachine>>[2];

export interface StoredInput {
  readonly id?: string;
  readonly sequence?: number;
  readonly text?: string;
  readonly idempotencyKey?: string;
  readonly durability?: "durable" | "ephemeral" | "derived";
  /** Events of the input chart that lead from `accepted` to the state that is stored. */
  readonly events?: readonly InputStep[];
  /** Fields that are left out of the row. */
  readonly without?: readonly (keyof InputRecord)[];
  readonly overwrite?: Partial<Record<keyof InputRecord, JsonValue>>;
}

export const queue: InputStep = { type: "queue", at: AT };
export const stage = (turnId: string): InputStep => ({ type: "stage", at: AT, turnId });
export const apply = (turnId: string): InputStep => ({ type: "apply", at: AT, turnId });
export const awaitConsumption: InputStep = { type: "awaitConsumption", at: AT, sequence: 0 };
export const consume: InputStep = { type: "consume", at: AT };

/** The value of an input row. */
export function inputRow(given: StoredInput = {}): JsonValue {
  const { id = "input-1", sequence = 0, text = "hello", durability = "durable" } = given;
  let snapshot = initialSnapshot(inputMachine, { inputId: id, attemptsMax: 3 });
  for (const event of given.events ?? []) {
    const taken = step(inputMachine, snapshot, event);
    if (!taken.accepted) throw new Error(`the input chart refuses ${event.type}`);
    snapshot = taken.snapshot;
  }
  const payload = { kind: "prompt", text } as const;
  const policy = decidePolicy(payload, "resting", []);
  const record: Record<string, unknown> = {
    id,
    sequence,
    position: sequence,
    snapshot: encodeSnapshot(snapshot),
    header: {
      id,
      timestamp: AT,
      origin: { type: "operator" },
      durability,
      visibility: { transcript: true, operator: true },
      ...(given.idempotencyKey === undefined ? {} : { idempotencyKey: given.idempotencyKey }),
    },
    payload,
    policy,
    stamp: semanticsStamp(policy, payload),
    createdAt: AT,
    updatedAt: AT,
    ...given.overwrite,
  };
  for (const field of given.without ?? []) delete record[field];
  return record as JsonValue;
}

/** Writes rows straight to the store, in one commit. */
export async function write(world: World, rows: readonly (readonly [Key, JsonValue])[]) {
  const transaction = await world.inner.begin();
  for (const [key, value] of rows) transaction.put(key, value);
  await transaction.commit();
}

export async function writeInput(world: World, sessionId: string, given: StoredInput = {}) {
  await write(world, [[keys.input(sessionId, given.sequence ?? 0), inputRow(given)]]);
}

/** Rows under the bare id, which an older layout used as owner and which nothing may read. */
export function aliasKey(sessionId: string, ...rest: readonly string[]): Key {
  return [sessionId, ...rest];
}

export async function writeReceipt(
  world: World,
  sessionId: string,
  { turnId, inputIds }: { readonly turnId: string; readonly inputIds: readonly string[] },
) {
  const receipt = {
    turnId,
    sequence: 0,
    boundary: "turnStart",
    inputIds,
    digest: "",
    messages: 0,
    at: AT,
  };
  await write(world, [[keys.receipt(sessionId, turnId, 0), receipt]]);
}
