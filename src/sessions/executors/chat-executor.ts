/**
 * An executor that asks a model, through any endpoint that speaks the chat completions protocol. It
 * streams, and it holds no state: every turn is asked with the end of the transcript, so a restart
 * changes nothing. A tool that the model calls is the host's matter: the turn ends with an open
 * callback, and a `continuation` input whose `reason` is the tool's answer goes on from there.
 *
 * The key is read once, from the options or from `OPENAI_API_KEY`. It is sent to the endpoint and
 * nowhere else: not to the store, not to a log, not into an error.
 */
import type { OpenAI } from "openai";
import { describeKind, ExecutorError, show, ValidationError } from "../../errors.js";
import { PAGE_MAX } from "../../limits.js";
import type { JsonObject, JsonValue } from "../../store/port.js";
import type { Message } from "../records.js";
import { chatTurn } from "./chat-messages.js";
import { type ChatAnswer, collectAnswer } from "./chat-stream.js";
import type { Executor, TurnRequest, TurnResult } from "./executor.js";
import { lastEntries } from "./last-entries.js";
import { optionCounts, TIMER_MAX_MS } from "./option-counts.js";

export interface ChatTool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments, an object. */
  readonly parameters?: JsonObject;
}

/** A piece of text as the model says it. It is not durable; the turn may fail and be tried again. */
export interface ChatDelta {
  readonly sessionId: string;
  readonly turnId: string;
  readonly text: string;
}

export interface ChatOptions {
  readonly model: string;
  /** Said to the model before the conversation, as a system message. */
  readonly instructions?: string;
  readonly tools?: readonly ChatTool[];
  /** Default: the environment variable `OPENAI_API_KEY`. An endpoint without keys takes any text. */
  readonly apiKey?: string;
  /** Default: `OPENAI_BASE_URL`, or OpenAI's own endpoint. */
  readonly baseURL?: string;
  /** Time for one turn, tries included, in milliseconds. Default 10 minutes. */
  readonly timeoutMs?: number;
  /** Tries after the first for a refused connection, a rate limit or a fault of the server. Default 2. */
  readonly maxRetries?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members of the request, such as `temperature`. */
  readonly body?: JsonObject;
  /** How many of the last transcript entries the model sees, 0 to 256. Default 100. */
  readonly transcriptEntries?: number;
  /** What the model may answer, in bytes. Default 1 MiB. */
  readonly outputBytesMax?: number;
  readonly onDelta?: (delta: ChatDelta) => void;
}

/**
 * Makes an executor that asks a model. One can serve any number of sessions. A turn's result is
 * `{ text, finishReason }`. Needs the package `openai`, which is loaded with the first turn. Every
 * failure of a turn is an `ExecutorError`.
 * @throws ValidationError no model, no key, an option out of range
 */
export function chatExecutor(options: ChatOptions): Executor {
  const settings = requireOptions(options);
  let client: Promise<OpenAI> | undefined;
  return {
    async apply(request) {
      client ??= makeClient(settings);
      return answerTurn(await client, settings, request);
    },
  };
}

type Settings = ReturnType<typeof requireOptions>;

async function makeClient({ options, apiKey, counts }: Settings): Promise<OpenAI> {
  const { OpenAI } = await import("openai").catch((cause: unknown) => {
    const advice = "the package openai cannot be loaded; install it with `npm install openai@6`";
    throw new ExecutorError(advice, {}, cause);
  });
  return new OpenAI({
    apiKey,
    baseURL: options.baseURL,
    timeout: counts.timeoutMs,
    maxRetries: counts.maxRetries,
    defaultHeaders: { ...options.headers },
    // It would log requests with their content.
    logLevel: "off",
  });
}

async function answerTurn(
  client: OpenAI,
  settings: Settings,
  request: TurnRequest,
): Promise<TurnResult> {
  const { options, counts } = settings;
  const entries = await lastEntries(request, counts.transcriptEntries);
  const history = entries.flatMap((entry) => entry.messages);
  const { messages, answers } = chatTurn(options.instructions, history, request.inputs);
  // Aborted when the answer is not wanted any more, so that the endpoint stops too.
  const unwanted = new AbortController();
  const timeout = AbortSignal.timeout(counts.timeoutMs);
  const signal = AbortSignal.any([request.signal, timeout, unwanted.signal]);
  try {
    const stream = await client.chat.completions.create(
      {
        ...options.body,
        model: options.model,
        messages: [...messages],
        ...toolsOf(options.tools),
        stream: true,
      },
      { signal },
    );
    const answer = await collectAnswer(stream, {
      outputBytesMax: counts.outputBytesMax,
      onText: (text) => {
        const { sessionId, turnId } = request;
        options.onDelta?.({ sessionId, turnId, text });
      },
    });
    // The package ends a stream that was aborted without a word.
    signal.throwIfAborted();
    return resultOf(answer, answers, options.tools ?? []);
  } catch (error) {
    if (request.signal.aborted) throw new ExecutorError("the turn was cut off");
    if (timeout.aborted) throw new ExecutorError(`no answer within ${counts.timeoutMs} ms`);
    throw faultOf(error, settings.apiKey);
  } finally {
    unwanted.abort();
  }
}

function toolsOf(tools: readonly ChatTool[] = []) {
  if (tools.length === 0) return {};
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      type: "function" as const,
      function: {
        name,
        ...(description === undefined ? {} : { description }),
        parameters: { ...(parameters ?? { type: "object", properties: {} }) },
      },
    })),
    parallel_tool_calls: false,
  };
}

function resultOf(
  { text, call, finishReason }: ChatAnswer,
  answers: readonly Message[],
  tools: readonly ChatTool[],
): TurnResult {
  if (call === undefined) {
    const said: Message = { role: "assistant", content: text };
    return { messages: [...answers, said], result: { text, finishReason } };
  }
  if (!tools.some(({ name }) => name === call.name)) {
    throw new ExecutorError(`the model called ${show(call.name)}, which is not one of the tools`);
  }
  const said: Message = { role: "assistant", content: text, toolCalls: [{ ...call }] };
  const callback = { tool: call.name, args: argumentsOf(call.name, call.arguments) };
  return { messages: [...answers, said], callback };
}

function argumentsOf(tool: string, text: string): JsonValue {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw new ExecutorError(`the model called ${show(tool)} with arguments that are not JSON`);
  }
}

/** An endpoint may repeat what it was sent, so a message of its own is shown without the key. */
function faultOf(error: unknown, apiKey: string): unknown {
  if (error instanceof ExecutorError || !(error instanceof Error)) return error;
  const status: unknown = Reflect.get(error, "status");
  if (status === 401 || status === 403) {
    return new ExecutorError(`the endpoint refused the key, status ${status}`);
  }
  const message = show(error.message.replaceAll(apiKey, "(key)"));
  return typeof status === "number"
    ? new ExecutorError(`the endpoint answered with status ${status}: ${message}`)
    : new ExecutorError(`the endpoint could not be asked: ${message}`);
}

function requireOptions(options: ChatOptions) {
  const subject = "chat options";
  const apiKey = options.apiKey ?? process.env.OPENAI_API_KEY ?? "";
  const expected = "a key, given here or in OPENAI_API_KEY";
  requireText(subject, "/model", options.model, "the name of a model");
  requireText(subject, "/apiKey", apiKey, expected);
  for (const [index, tool] of (options.tools ?? []).entries()) {
    requireText(subject, `/tools/${index}/name`, tool.name, "the name of a tool");
  }
  const counts = optionCounts(subject, options, {
    timeoutMs: { fallback: 10 * 60 * 1_000, min: 1, max: TIMER_MAX_MS },
    maxRetries: { fallback: 2, min: 0, max: 100 },
    transcriptEntries: { fallback: 100, min: 0, max: PAGE_MAX },
    outputBytesMax: { fallback: 1_048_576, min: 0, max: 1_073_741_824 },
  });
  return { options, apiKey, counts };
}

function requireText(subject: string, path: string, value: unknown, expected: string): void {
  if (typeof value === "string" && value !== "") return;
  throw new ValidationError(subject, [{ path, found: describeKind(value), expected }]);
}
