/**
 * A conversation in the form of the chat completions protocol. What is stored comes from any
 * executor and any earlier version of an app, so whatever the protocol does not know is turned into
 * text, and a call whose answer is missing gets one: the endpoint refuses it otherwise.
 */
import type { ChatCompletionContentPart, ChatCompletionMessageParam } from "openai/resources";
import type { JsonValue } from "../../store/port.js";
import { contentOf } from "../input-message.js";
import type { Message } from "../records.js";
import type { TurnInputView } from "./executor.js";

/** A tool call as it is kept in the transcript. `arguments` is the model's own JSON text. */
export interface StoredToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** The answer that a call gets when the conversation went on without one. */
const NOT_ANSWERED = "No answer was given.";

export interface ChatTurn {
  readonly messages: readonly ChatCompletionMessageParam[];
  /** Answers to tool calls in this turn, to be stored with what the model says to them. */
  readonly answers: readonly Message[];
}

/** The history and the inputs of a turn as messages for the endpoint. */
export function chatTurn(
  instructions: string | undefined,
  history: readonly Message[],
  inputs: readonly TurnInputView[],
): ChatTurn {
  const conversation = new Conversation();
  if (instructions !== undefined) conversation.add({ role: "system", content: instructions });
  for (const message of history) conversation.addStored(message);
  const answers: Message[] = [];
  for (const input of inputs) {
    const call = conversation.pending;
    if (input.payload.kind === "continuation" && call !== undefined) {
      const answer = { role: "tool", toolCallId: call, content: input.payload.reason };
      answers.push({ ...answer, inputId: input.inputId });
      conversation.addStored(answer);
    } else conversation.addUser(contentOf(input.payload), blocksOf(input.payload));
  }
  return { messages: conversation.finished(), answers };
}

class Conversation {
  readonly #messages: ChatCompletionMessageParam[] = [];
  /** The call that waits for its answer. */
  pending: string | undefined;

  add(message: ChatCompletionMessageParam): void {
    this.#answerPending();
    this.#messages.push(message);
  }

  addUser(content: JsonValue | undefined, blocks: readonly JsonValue[]): void {
    const text = textOf(content);
    const parts = blocks.flatMap(partOf);
    if (text !== "") parts.unshift(textPart(text));
    this.add({ role: "user", content: blocks.length === 0 ? text : parts });
  }

  addStored(message: Message): void {
    const { role, content, toolCallId } = message;
    if (role === "system") this.add({ role, content: textOf(content) });
    else if (role === "assistant") this.#addAssistant(message);
    else if (role !== "tool") {
      this.addUser(content, Array.isArray(message.blocks) ? message.blocks : []);
    } else if (toolCallId === this.pending) this.#answerPending(textOf(content));
    // An answer whose call is not part of the history means nothing to the endpoint.
  }

  finished(): readonly ChatCompletionMessageParam[] {
    this.#answerPending();
    return this.#messages;
  }

  #addAssistant({ content, toolCalls }: Message): void {
    const call = (Array.isArray(toolCalls) ? toolCalls : []).find(isStoredCall);
    if (call === undefined) {
      this.add({ role: "assistant", content: textOf(content) });
      return;
    }
    const { id, name, arguments: text } = call;
    this.add({
      role: "assistant",
      content: textOf(content) || null,
      tool_calls: [{ id, type: "function", function: { name, arguments: text } }],
    });
    this.pending = id;
  }

  #answerPending(content = NOT_ANSWERED): void {
    if (this.pending === undefined) return;
    this.#messages.push({ role: "tool", tool_call_id: this.pending, content });
    this.pending = undefined;
  }
}

function isStoredCall(value: unknown): value is StoredToolCall {
  return (
    typeof value === "object" &&
    value !== null &&
    ["id", "name", "arguments"].every((name) => typeof Reflect.get(value, name) === "string")
  );
}

function textOf(content: JsonValue | undefined): string {
  if (content === undefined || content === null) return "";
  return typeof content === "string" ? content : JSON.stringify(content);
}

function blocksOf(payload: TurnInputView["payload"]): readonly JsonValue[] {
  return "blocks" in payload ? ((payload.blocks ?? []) as unknown as readonly JsonValue[]) : [];
}

function textPart(text: string): ChatCompletionContentPart {
  return { type: "text", text };
}

function partOf(block: JsonValue): readonly ChatCompletionContentPart[] {
  if (typeof block !== "object" || block === null || Array.isArray(block)) return [];
  const { type, text, mediaType, data } = block as Readonly<Record<string, JsonValue>>;
  if (type === "text" && typeof text === "string") return [textPart(text)];
  if (type !== "image" || typeof mediaType !== "string" || typeof data !== "string") return [];
  return [{ type: "image_url", image_url: { url: `data:${mediaType};base64,${data}` } }];
}
