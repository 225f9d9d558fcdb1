/** The check of what executors answer: a bad answer is a failed attempt, not a failed commit. */
import { describeKind, ValidationError } from "../errors.js";
import { checkJson } from "../store/json.js";
import type { JsonValue } from "../store/port.js";
import type { TurnResult } from "./executors/executor.js";
import type { Message } from "./records.js";

/** A turn's answer, checked: everything in it can be stored. */
export interface CheckedAnswer {
  readonly messages: readonly Message[];
  readonly result: JsonValue | undefined;
  readonly callback: TurnResult["callback"];
}

/** @throws ValidationError something in it cannot be stored */
export function checkAnswer(value: TurnResult): CheckedAnswer {
  if (typeof value !== "object" || value === null) {
    throw new ValidationError("executor's answer", [
      { path: "", found: describeKind(value), expected: "an object" },
    ]);
  }
  const { messages = [], result, callback } = value;
  if (!Array.isArray(messages)) {
    throw new ValidationError("executor's answer", [
      { path: "/messages", found: describeKind(messages), expected: "an array" },
    ]);
  }
  checkJson({ messages, result: result ?? null, callback: callback ?? null });
  return { messages, result, callback };
}
