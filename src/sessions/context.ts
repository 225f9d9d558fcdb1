/**
 * Context that a host adds to a conversation by itself: one transcript entry, without an input and
 * without a receipt, written once under its key.
 */
import { createHash } from "node:crypto";
import { IdempotencyConflictError, NotReadyError } from "../errors.js";
import type { JsonValue } from "../store/port.js";
import { requireId, requireText } from "./parse-input.js";
import { keys } from "./records.js";
import type { SessionRuntime } from "./runtime.js";

export interface ContextRequest {
  /** Joins the transcript as a message of the role `system`. */
  readonly content: string;
  /** The same key again gives the receipt of the first. */
  readonly idempotencyKey?: string;
}

export interface ContextReceipt {
  /** A UUID made for this entry, in the place of a turn's id. */
  readonly turnId: string;
  /** Sequence of the transcript entry. */
  readonly sequence: number;
  readonly at: string;
}

interface ContextRecord extends ContextReceipt {
  readonly digest: string;
}

/**
 * @throws ValidationError | IdempotencyConflictError the key belongs to other content
 * @throws NotReadyError the session is stopped or on its way out | OperationError
 */
export async function appendContext(
  runtime: SessionRuntime,
  { content, idempotencyKey }: ContextRequest,
): Promise<ContextReceipt> {
  requireText(content, "context");
  if (idempotencyKey !== undefined) requireId(idempotencyKey, "idempotency key");
  const digest = createHash("sha256").update(content).digest("hex");
  return runtime.operation("append context", async () => {
    const { state, environment } = runtime;
    if (state.actor.state === "stopped" || state.actor.context.registration === "draining") {
      throw new NotReadyError(runtime.id, state.actor.state, "append context");
    }
    if (idempotencyKey !== undefined) {
      const known = await runtime.load(keys.context(runtime.id, idempotencyKey));
      if (known !== undefined) return receiptOf(runtime, idempotencyKey, known.value, digest);
    }
    const plan = runtime.plan();
    const receipt: ContextReceipt = {
      turnId: environment.ids.next(plan.atMs),
      sequence: plan.ledger.nextTranscript,
      at: plan.at,
    };
    plan.addMessages([{ role: "system", content }], { turnId: receipt.turnId, receipt: null });
    if (idempotencyKey !== undefined) {
      const record: ContextRecord = { ...receipt, digest };
      plan.put(keys.context(runtime.id, idempotencyKey), record as unknown as JsonValue);
    }
    await runtime.commit(plan);
    return receipt;
  });
}

function receiptOf(
  runtime: SessionRuntime,
  key: string,
  value: JsonValue,
  digest: string,
): ContextReceipt {
  const { digest: known, ...receipt } = value as unknown as ContextRecord;
  if (known !== digest) throw new IdempotencyConflictError(runtime.id, key, receipt.turnId);
  return receipt;
}
