/** What an input says to a conversation, in one form for transcripts and executors. */
import type { JsonValue } from "../store/port.js";
import type { InputPayload } from "./input.js";

/** The content without its blocks: text, or the value of what is not made of words. */
export function contentOf(payload: InputPayload): JsonValue {
  switch (payload.kind) {
    case "prompt":
      return payload.text;
    case "peer":
      return payload.body;
    case "flowStep":
      return payload.instructions;
    case "externalEvent":
      return { eventType: payload.eventType, payload: payload.payload };
    case "continuation":
      return payload.reason;
    case "operation":
      return payload.event;
  }
}
