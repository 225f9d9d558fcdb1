/** What a program's output means: an answer in JSON, or text that is the result itself. */
import { ExecutorError, ValidationError, type ValidationIssue } from "../../errors.js";
import { checkJson } from "../../store/json.js";
import type { JsonValue } from "../../store/port.js";
import type { TurnResult } from "./executor.js";

const names = new Set(["messages", "result", "callback"]);

/**
 * A JSON object with no other names than `messages`, `result` and `callback` is the answer as it
 * stands. Everything else is text, without the line ends after it: the result, and one message of
 * the assistant. Nothing written is an answer without a result.
 * @throws ExecutorError not UTF-8, or an answer whose parts are not what they should be
 */
export function parseAnswer(output: Uint8Array): TurnResult {
  const text = decode(output).replace(/[\r\n]+$/, "");
  if (text === "") return {};
  const answer = parseObject(text);
  if (answer === undefined)
    return { messages: [{ role: "assistant", content: text }], result: text };
  try {
    requireParts(answer);
    checkJson(answer, "answer of the program");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ExecutorError(`its output is no answer. ${reason.replace(/\.$/, "")}`, {}, error);
  }
  return answer as TurnResult;
}

function decode(output: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(output);
  } catch (error) {
    throw new ExecutorError("its output is not valid UTF-8", {}, error);
  }
}

function parseObject(text: string): { readonly [name: string]: JsonValue } | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const isAnswer = Object.keys(value as object).every((name) => names.has(name));
    return isAnswer ? (value as { readonly [name: string]: JsonValue }) : undefined;
  } catch {
    // Text may begin with a brace and be no JSON; then it is text.
    return undefined;
  }
}

function requireParts({ messages, callback }: { readonly [name: string]: JsonValue }): void {
  const issues: ValidationIssue[] = [];
  if (messages !== undefined && !isListOfObjects(messages)) {
    issues.push({ path: "/messages", found: "something else", expected: "an array of objects" });
  }
  const isCallback =
    callback === undefined ||
    (isObject(callback) && typeof callback.tool === "string" && callback.args !== undefined);
  if (!isCallback) {
    issues.push({ path: "/callback", found: "something else", expected: "an object {tool, args}" });
  }
  if (issues.length > 0) throw new ValidationError("answer of the program", issues);
}

function isListOfObjects(value: JsonValue): boolean {
  return Array.isArray(value) && value.every(isObject);
}

function isObject(value: JsonValue): value is { readonly [name: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
