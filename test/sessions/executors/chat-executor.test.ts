import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  ExecutorError,
  type InputRequest,
  type Session,
  Supervisor,
  ValidationError,
} from "../../../src/index.js";
import {
  type ChatDelta,
  type ChatOptions,
  chatExecutor,
} from "../../../src/sessions/executors/chat-executor.js";
import { World } from "../../world.js";
import {
  type ChatReply,
  ChatServer,
  calls,
  chunk,
  endStream,
  refuses,
  says,
  startStream,
} from "./chat-server.js";
import { turnRequest } from "./turn-request.js";

const KEY = "sk-very-secret-0123456789";
const tool = { name: "lookUp", parameters: { type: "object" } };

let server: ChatServer;
afterEach(async () => {
  vi.unstubAllEnvs();
  await server?.close();
});

async function chat(replies: readonly ChatReply[], options: Partial<ChatOptions> = {}) {
  server = await ChatServer.start(...replies);
  return chatExecutor({ model: "m-1", apiKey: KEY, baseURL: server.baseURL, ...options });
}

async function completionOf(session: Session, request: InputRequest) {
  const admission = await session.accept(request);
  if (admission.outcome === "rejected") throw new Error(admission.reason);
  return admission.completion;
}

async function faultOf(work: Promise<unknown>): Promise<ExecutorError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ExecutorError);
  return error as ExecutorError;
}

describe("what the endpoint is asked", () => {
  it("gets model, instructions, history, inputs, tools and further members, with the key", async () => {
    const executor = await chat([says("ok")], {
      instructions: "Be brief.",
      tools: [tool],
      headers: { "x-tenant": "t1" },
      body: { temperature: 0 },
    });
    const messages = [
      { role: "user", content: "before" },
      { role: "assistant", content: "yes" },
      { role: "narrator", content: { scene: 1 } },
    ];
    const transcript = [{ turnId: "turn-0", receipt: 0, messages }];
    await executor.apply(turnRequest({ texts: ["hello"], transcript }));
    const [call] = server.calls;
    expect(call?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, "x-tenant": "t1" });
    expect(call?.request).toEqual({
      model: "m-1",
      stream: true,
      temperature: 0,
      parallel_tool_calls: false,
      tools: [{ type: "function", function: { name: "lookUp", parameters: { type: "object" } } }],
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "before" },
        { role: "assistant", content: "yes" },
        { role: "user", content: '{"scene":1}' },
        { role: "user", content: "hello" },
      ],
    });
  });

  it("gets the last entries of the transcript, as many as were asked for", async () => {
    const executor = await chat([says("ok")], { transcriptEntries: 1 });
    const transcript = ["first", "second"].map((content) => ({
      turnId: "turn-0",
      receipt: 0,
      messages: [{ role: "user", content }],
    }));
    await executor.apply(turnRequest({ transcript }));
    const contents = server.calls[0]?.request.messages.map((message) => message.content);
    expect(contents).toEqual(["second", "hello"]);
  });

  it("takes the key from the environment, and from the options first", async () => {
    vi.stubEnv("OPENAI_API_KEY", "from-the-environment");
    const executor = await chat([says("ok")]);
    await executor.apply(turnRequest());
    const other = chatExecutor({ model: "m-1", baseURL: server.baseURL });
    await other.apply(turnRequest());
    expect(server.calls.map((call) => call.headers.authorization)).toEqual([
      `Bearer ${KEY}`,
      "Bearer from-the-environment",
    ]);
  });

  it("never gets a call without its answer, nor an answer without its call", async () => {
    const executor = await chat([says("ok")]);
    const toolCalls = [{ id: "call-1", name: "lookUp", arguments: "{}" }];
    const messages = [
      { role: "tool", toolCallId: "call-0", content: "an answer from before the history" },
      { role: "assistant", content: "", toolCalls },
    ];
    await executor.apply(turnRequest({ transcript: [{ turnId: "turn-0", receipt: 0, messages }] }));
    const [call, answer, prompt, ...more] = server.calls[0]?.request.messages ?? [];
    expect(call).toMatchObject({ role: "assistant", tool_calls: [{ id: "call-1" }] });
    expect(answer).toMatchObject({ role: "tool", tool_call_id: "call-1" });
    expect(prompt).toEqual({ role: "user", content: "hello" });
    expect(more).toEqual([]);
  });
});

describe("what the model answers", () => {
  it("is heard piece by piece, and is the turn's message and result", async () => {
    const deltas: ChatDelta[] = [];
    const executor = await chat([says("Good ", "day \u{1f44b}")], {
      onDelta: (delta) => deltas.push(delta),
    });
    expect(await executor.apply(turnRequest())).toEqual({
      messages: [{ role: "assistant", content: "Good day \u{1f44b}" }],
      result: { text: "Good day \u{1f44b}", finishReason: "stop" },
    });
    expect(deltas.map(({ text }) => text)).toEqual(["Good ", "day \u{1f44b}"]);
    expect(deltas[0]).toMatchObject({ sessionId: "session-1", turnId: "turn-1" });
  });

  it("keeps why it ended where that is not its own end", async () => {
    const executor = await chat([
      (response) => {
        startStream(response);
        chunk(response, { content: "half" }, "length");
        endStream(response);
      },
    ]);
    const { result } = await executor.apply(turnRequest());
    expect(result).toEqual({ text: "half", finishReason: "length" });
  });

  it("may be a tool call, put together from its pieces", async () => {
    const executor = await chat([calls("lookUp", '{"room":', "204}")], { tools: [tool] });
    const call = { id: "call-1", name: "lookUp", arguments: '{"room":204}' };
    expect(await executor.apply(turnRequest())).toEqual({
      messages: [{ role: "assistant", content: "", toolCalls: [call] }],
      callback: { tool: "lookUp", args: { room: 204 } },
    });
  });

  it.each([
    ["a tool that is not there", calls("rm", "{}"), /"rm", which is not one of the tools/],
    ["arguments that are not JSON", calls("lookUp", "{"), /arguments that are not JSON/],
    ["more than it may", says("x".repeat(2_000)), /more than 1000 bytes/],
    [
      "an end without a reason",
      ((response) => {
        startStream(response);
        chunk(response, { content: "half an ans" });
        endStream(response);
      }) as ChatReply,
      /was cut off/,
    ],
    [
      "half, and the connection breaks",
      ((response) => {
        startStream(response);
        chunk(response, { content: "half an ans" });
        setImmediate(() => response.destroy());
      }) as ChatReply,
      /could not be asked/,
    ],
    [
      "what is no event of the protocol",
      ((response) => {
        startStream(response);
        response.end("data: {not json\n\n");
      }) as ChatReply,
      /could not be asked/,
    ],
  ])("is a failed turn when it is %s", async (_, reply, reason) => {
    const executor = await chat([reply], { tools: [tool], outputBytesMax: 1_000, maxRetries: 0 });
    expect((await faultOf(executor.apply(turnRequest()))).reason).toMatch(reason);
  });
});

describe("an endpoint that does not answer", () => {
  it("with a rate limit or a fault of its own is asked again by the package", async () => {
    const executor = await chat([
      refuses(429, "slow down", { "retry-after-ms": "1" }),
      refuses(503, "overloaded", { "retry-after-ms": "1" }),
      says("at last"),
    ]);
    const { result } = await executor.apply(turnRequest());
    expect(result).toMatchObject({ text: "at last" });
    expect(server.calls.length).toBe(3);
  });

  it("fails the turn with its status once the tries are used up", async () => {
    const executor = await chat([refuses(500, "broken", { "retry-after-ms": "1" })]);
    const { reason } = await faultOf(executor.apply(turnRequest()));
    expect(reason).toMatch(/status 500.*broken/);
    expect(server.calls.length).toBe(3);
  });

  it("in time fails the turn, and the connection is let go", async () => {
    const executor = await chat([(response) => startStream(response)], { timeoutMs: 50 });
    expect((await faultOf(executor.apply(turnRequest()))).reason).toBe("no answer within 50 ms");
    await server.calls[0]?.gone;
  });

  it("at all fails the turn", async () => {
    const executor = await chat([says("ok")], { maxRetries: 0 });
    await server.close();
    expect((await faultOf(executor.apply(turnRequest()))).reason).toMatch(/could not be asked/);
    server = await ChatServer.start();
  });

  it("because the turn was cancelled sees the connection close", async () => {
    const cancel = new AbortController();
    const executor = await chat(
      [
        (response) => {
          startStream(response);
          chunk(response, { content: "a long answer begins" });
        },
      ],
      { onDelta: () => cancel.abort() },
    );
    const { reason } = await faultOf(executor.apply(turnRequest({ signal: cancel.signal })));
    expect(reason).toBe("the turn was cut off");
    await server.calls[0]?.gone;
  });
});

describe("the key", () => {
  it.each([401, 403])("is not told when it is refused with %i", async (status) => {
    const executor = await chat([refuses(status, `Incorrect API key provided: ${KEY}`)]);
    const error = await faultOf(executor.apply(turnRequest()));
    expect(error.reason).toBe(`the endpoint refused the key, status ${status}`);
    expect(`${error.stack} ${JSON.stringify(error)} ${error.cause}`).not.toContain(KEY);
  });

  it("is not told where the endpoint repeats it in another error", async () => {
    const executor = await chat([refuses(400, `bad header Bearer ${KEY}`)]);
    const error = await faultOf(executor.apply(turnRequest()));
    expect(error.message).toMatch(/status 400/);
    expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain(KEY);
  });

  it("is required when the executor is made", () => {
    vi.stubEnv("OPENAI_API_KEY", "");
    expect(() => chatExecutor({ model: "m-1" })).toThrow(ValidationError);
    expect(() => chatExecutor({ model: "m-1" })).toThrow(/\/apiKey is an empty string/);
  });

  it("never reaches the files of a store, whatever happens to a turn", async () => {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-chat-"));
    const executor = await chat([refuses(401, `wrong key ${KEY}`), says("fine")]);
    await using supervisor = await Supervisor.open({
      store: directory,
      limits: { retryPauseMinMs: 1, retryPauseMaxMs: 1 },
    });
    const session = await supervisor.sessions.open("s1", { executor });
    const hello = await completionOf(session, { kind: "prompt", text: "hello" });
    expect(hello).toMatchObject({ type: "abandoned", willRetry: true });
    const again = await completionOf(session, { kind: "prompt", text: "again" });
    expect(again).toMatchObject({ type: "completed" });
    await supervisor.close();
    const stored = readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"));
    expect(stored.join("")).toContain("refused the key");
    expect(stored.join("")).not.toContain(KEY);
    rmSync(directory, { recursive: true });
  });
});

describe("options", () => {
  it.each([
    [{ model: "" }, "/model"],
    [{ timeoutMs: 0 }, "/timeoutMs"],
    [{ maxRetries: -1 }, "/maxRetries"],
    [{ transcriptEntries: 257 }, "/transcriptEntries"],
    [{ outputBytesMax: 0.5 }, "/outputBytesMax"],
    [{ tools: [{ name: "" }] }, "/tools/0/name"],
  ])("%j is refused at %s", (options, path) => {
    const make = () => chatExecutor({ model: "m-1", apiKey: KEY, ...options });
    expect(make).toThrow(ValidationError);
    expect(make).toThrow(new RegExp(path));
  });
});

describe("a session over a model", () => {
  it("shows an open tool call as callbackPending; a continuation answers it, also after a restart", async () => {
    const executor = await chat([calls("lookUp", '{"room":204}'), says("It is free.")], {
      tools: [tool],
    });
    const world = new World({ clock: "held" });
    const before = await world.open();
    const first = await before.sessions.open("s1", { executor });
    expect(await completionOf(first, { kind: "prompt", text: "Is 204 free?" })).toEqual({
      type: "callbackPending",
      tool: "lookUp",
      args: { room: 204 },
    });
    await before.close();

    const after = await world.open();
    const session = await after.sessions.open("s1", { executor });
    const answer = { kind: "continuation", reason: '{"free":true}' } as const;
    expect(await completionOf(session, answer)).toEqual({
      type: "completed",
      result: { text: "It is free.", finishReason: "stop" },
    });
    expect(server.calls[1]?.request.messages).toEqual([
      { role: "user", content: "Is 204 free?" },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call-1",
            type: "function",
            function: { name: "lookUp", arguments: '{"room":204}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "call-1", content: '{"free":true}' },
    ]);
    await completionOf(session, { kind: "prompt", text: "Thanks" });
    expect(server.calls[2]?.request.messages.slice(2)).toEqual([
      { role: "tool", tool_call_id: "call-1", content: '{"free":true}' },
      { role: "assistant", content: "It is free." },
      { role: "user", content: "Thanks" },
    ]);
    await after.close();
    expect(await world.audit()).toEqual([]);
  });

  it("shows images to the model as data, though they are stored as blobs", async () => {
    const executor = await chat([says("A red dot.")]);
    const world = new World({ clock: "held" });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s1", { executor });
    const data = Buffer.from("not really a picture").toString("base64");
    const blocks = [{ type: "image", mediaType: "image/png", data }] as const;
    await completionOf(session, { kind: "prompt", text: "What is it?", blocks });
    await completionOf(session, { kind: "prompt", text: "Sure?" });
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } };
    const shown = { role: "user", content: [{ type: "text", text: "What is it?" }, image] };
    expect(server.calls[0]?.request.messages).toEqual([shown]);
    expect(server.calls[1]?.request.messages[0]).toEqual(shown);
    await supervisor.close();
  });

  it("ends the request of a turn that is cancelled", async () => {
    const executor = await chat([(response) => startStream(response)]);
    const world = new World({ clock: "held" });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s1", { executor });
    const completion = completionOf(session, { kind: "prompt", text: "hello" });
    await vi.waitFor(() => expect(server.calls.length).toBe(1));
    await session.cancelTurn();
    expect(await completion).toEqual({ type: "cancelled" });
    await server.calls[0]?.gone;
    await supervisor.close();
  });
});
