/**
 * One answer of a model, put together from its stream: text as it comes, the pieces of a tool call,
 * and why it ended. A stream that stops without saying why was cut off, whatever it has said.
 */
import type { ChatCompletionChunk } from "openai/resources";
import { ExecutorError } from "../../errors.js";
import type { StoredToolCall } from "./chat-messages.js";

export interface ChatAnswer {
  readonly text: string;
  readonly call: StoredToolCall | undefined;
  /** `stop`, `length`, `content_filter`, `tool_calls`, or what else the endpoint says. */
  readonly finishReason: string;
}

export interface CollectOptions {
  /** Bytes of UTF-8 of text and arguments together. */
  readonly outputBytesMax: number;
  readonly onText: (text: string) => void;
}

/** @throws ExecutorError the stream is cut off, too long, or is not of the protocol */
export async function collectAnswer(
  stream: AsyncIterable<ChatCompletionChunk>,
  { outputBytesMax, onText }: CollectOptions,
): Promise<ChatAnswer> {
  let text = "";
  let bytes = 0;
  let finishReason: string | undefined;
  const call = { id: "", name: "", arguments: "" };
  const count = (piece: string): string => {
    bytes += Buffer.byteLength(piece);
    if (bytes > outputBytesMax) {
      throw new ExecutorError(`the model answered with more than ${outputBytesMax} bytes`);
    }
    return piece;
  };
  for await (const chunk of stream) {
    const choice = chunk.choices?.[0];
    if (choice === undefined) continue;
    const piece = choice.delta?.content ?? choice.delta?.refusal;
    if (typeof piece === "string" && piece !== "") {
      text += count(piece);
      onText(piece);
    }
    for (const part of choice.delta?.tool_calls ?? []) {
      // One call at a time was asked for; what an endpoint adds to that is not heard.
      if ((part.index ?? 0) !== 0) continue;
      call.id ||= count(part.id ?? "");
      call.name ||= count(part.function?.name ?? "");
      call.arguments += count(part.function?.arguments ?? "");
    }
    finishReason = choice.finish_reason ?? finishReason;
  }
  if (finishReason === undefined) throw new ExecutorError("the answer of the model was cut off");
  return {
    text: text.toWellFormed(),
    call: call.name === "" ? undefined : wellFormed(call),
    finishReason: finishReason.toWellFormed(),
  };
}

function wellFormed({ id, name, arguments: text }: StoredToolCall): StoredToolCall {
  return {
    id: id.toWellFormed(),
    name: name.toWellFormed(),
    arguments: text.toWellFormed(),
  };
}
