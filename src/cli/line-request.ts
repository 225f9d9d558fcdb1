/** A line to an input: the text of a prompt, or a JSON object with the fields of an input. */
import { ValidationError } from "../errors.js";
import type { InputRequest } from "../sessions/input.js";

/** What is added to lines that do not say it themselves. */
export interface LineDefaults {
  /** Prompts are handled as steer. */
  readonly isSteer: boolean;
  /** The idempotency key of a line is this, a colon and the number of the line. */
  readonly keyPrefix?: string | undefined;
}

/**
 * A line that begins with a brace is JSON; its `kind` is `prompt` where it names none. Every other
 * line is a prompt as it stands. Whether the fields are right is admission's matter.
 * @throws ValidationError it begins with a brace and is not JSON
 */
export function requestOfLine(
  { number, text }: { readonly number: number; readonly text: string },
  { isSteer, keyPrefix }: LineDefaults,
): InputRequest {
  const isJson = text.trimStart().startsWith("{");
  const given = (isJson ? parseObject(text) : { text }) as { readonly kind?: unknown };
  const isPrompt = given.kind === undefined || given.kind === "prompt";
  return {
    kind: "prompt",
    ...(isSteer && isPrompt ? { handling: "steer" } : {}),
    ...(keyPrefix === undefined ? {} : { idempotencyKey: `${keyPrefix}:${number}` }),
    ...given,
  } as InputRequest;
}

function parseObject(text: string): object {
  try {
    return JSON.parse(text);
  } catch (error) {
    // Of the parser's message only the place is taken: the rest quotes the line.
    const place = /position \d+/.exec(error instanceof Error ? error.message : "");
    throw new ValidationError("line", [
      {
        path: "",
        found: place === null ? "not JSON" : `not JSON at ${place[0]}`,
        expected: "a JSON object, or text that does not begin with a brace",
      },
    ]);
  }
}
