/** A line to an input: the text of a prompt, or a JSON object with the fields of an input. */
import { ValidationError } from "../errors.js";
import type { InputRequest } from "../sessions/input.js";

/**
 * A line that begins with a brace is JSON; its `kind` is `prompt` where it names none. Every other
 * line is a prompt as it stands. Whether the fields are right is admission's matter.
 * @throws ValidationError it begins with a brace and is not JSON
 */
export function requestOfLine(text: string): InputRequest {
  if (!text.trimStart().startsWith("{")) return { kind: "prompt", text };
  return { kind: "prompt", ...parseObject(text) } as InputRequest;
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
