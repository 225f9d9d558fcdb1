/** How an ended input completed, read back from its row and its turn. */
import type { InputContext } from "../../machines/input.js";
import type { TurnContext } from "../../machines/turn.js";
import { assert } from "../errors.js";
import type { JsonValue, Key, StoredRecord } from "../store/port.js";
import { type Completion, completionOfOutcome } from "./completion.js";
import { type InputRecord, keys, type TurnRecord } from "./records.js";

export async function storedCompletion(
  load: (key: Key) => Promise<StoredRecord | undefined>,
  sessionId: string,
  input: InputRecord,
): Promise<Completion> {
  const { outcome, lastTurnId } = input.snapshot.context as unknown as InputContext;
  assert(outcome !== null, "an ended input has an outcome");
  if (outcome.type !== "consumed" || lastTurnId === null) return completionOfOutcome(outcome);
  const record = await load(keys.turn(sessionId, lastTurnId));
  if (record === undefined) return { type: "completedWithoutResult" };
  return completionOfTurn(record.value as unknown as TurnRecord);
}

/** What the inputs of a completed turn hear. */
function completionOfTurn(turn: TurnRecord): Completion {
  const { reason } = turn.snapshot.context as unknown as TurnContext;
  if (turn.snapshot.value === "callbackPending") {
    return {
      type: "callbackPending",
      tool: (reason ?? "").replace(/^callback /, ""),
      args: turn.result ?? null,
    };
  }
  return completionOfResult(turn.result);
}

export function completionOfResult(result: JsonValue | undefined): Completion {
  return result === undefined ? { type: "completedWithoutResult" } : { type: "completed", result };
}
