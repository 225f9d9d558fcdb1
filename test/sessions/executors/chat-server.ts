/** An endpoint that speaks the chat completions protocol, on the loopback, answering by script. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonValue } from "../../../src/store/port.js";

interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Record<string, JsonValue>[];
  readonly [member: string]: unknown;
}

export interface ChatCall {
  readonly request: ChatRequest;
  readonly headers: IncomingMessage["headers"];
  /** Resolves when the connection of this call is gone. */
  readonly gone: Promise<unknown>;
}

export type ChatReply = (response: ServerResponse, call: ChatCall) => void | Promise<void>;

/** Replies come in order; the last one goes on. */
export class ChatServer {
  readonly calls: ChatCall[] = [];
  readonly #server: Server;
  readonly #replies: ChatReply[];

  private constructor(replies: readonly ChatReply[]) {
    this.#replies = [...replies];
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(...replies: readonly ChatReply[]): Promise<ChatServer> {
    const server = new ChatServer(replies);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get baseURL(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const call = {
      request: JSON.parse(body) as ChatRequest,
      headers: request.headers,
      gone: once(response, "close"),
    };
    this.calls.push(call);
    const reply = this.#replies.length > 1 ? this.#replies.shift() : this.#replies[0];
    await reply?.(response, call);
  }
}

/** One event of a stream, with what the first choice adds. */
export function chunk(
  response: ServerResponse,
  delta: Record<string, unknown>,
  finishReason: string | null = null,
): void {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  const event = { id: "c-1", object: "chat.completion.chunk", created: 1, model: "m", choices };
  response.write(`data: ${JSON.stringify(event)}\n\n`);
}

export function startStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

export function endStream(response: ServerResponse): void {
  response.end("data: [DONE]\n\n");
}

/** Says the pieces and stops. */
export function says(...pieces: readonly string[]): ChatReply {
  return (response) => {
    startStream(response);
    for (const content of pieces) chunk(response, { content });
    chunk(response, {}, "stop");
    endStream(response);
  };
}

/** Calls a tool, its arguments in pieces. */
export function calls(name: string, ...pieces: readonly string[]): ChatReply {
  return (response) => {
    startStream(response);
    const first = { index: 0, id: "call-1", type: "function", function: { name, arguments: "" } };
    chunk(response, { tool_calls: [first] });
    for (const text of pieces) {
      chunk(response, { tool_calls: [{ index: 0, function: { arguments: text } }] });
    }
    chunk(response, {}, "tool_calls");
    endStream(response);
  };
}

export function refuses(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): ChatReply {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ error: { message } }));
  };
}
