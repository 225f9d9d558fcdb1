import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  type Completion,
  type Executor,
  functionExecutor,
  NotReadyError,
  type Session,
  type TurnRequest,
} from "../../src/index.js";
import { untilRest } from "../test-clock.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, World } from "../world.js";

async function openWith(executor: Executor, world = new World()) {
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s", { executor });
  return { world, supervisor, session };
}

/** The ids that a session's receipts name, receipt by receipt. */
async function receiptIds(world: World): Promise<readonly (readonly string[])[]> {
  const rows = await world.rows("session", "s", "receipt");
  return rows.map(({ value }) => (value as unknown as { inputIds: string[] }).inputIds);
}

async function abandonment(session: Session, inputId: string) {
  return (await session.input(inputId))?.outcome;
}

describe("a turn that succeeds", () => {
  it("consumes its inputs with one receipt that names them, in one commit with the transcript", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const admission = await acceptPrompt(session, "hello");
    const turn = await executor.next();
    expect(turn.request.inputs).toMatchObject([
      { inputId: admission.inputId, attempt: 1, payload: { kind: "prompt", text: "hello" } },
    ]);
    expect((await session.input(admission.inputId))?.phase).toBe("staged");
    expect(session.state()).toBe("running");
    const commits = world.store.counts.commit;
    turn.resolve({ messages: [{ role: "assistant", content: "hi" }], result: { n: 1 } });
    expect(await admission.completion).toEqual({ type: "completed", result: { n: 1 } });
    expect(world.store.counts.commit).toBe(commits + 1);

    const receipt = await session.receipt(turn.request.turnId, 0);
    const message = { role: "user", inputId: admission.inputId, content: "hello" };
    const answer = { role: "assistant", content: "hi" };
    const chain = (before: string, of: object) =>
      createHash("sha256").update(before).update(JSON.stringify(of)).digest("hex");
    expect(receipt).toMatchObject({
      turnId: turn.request.turnId,
      sequence: 0,
      boundary: "turnStart",
      inputIds: [admission.inputId],
      messages: 2,
      digest: chain(chain("", message), answer),
    });
    expect((await session.transcript()).items).toMatchObject([{ messages: [message, answer] }]);
    expect(await session.input(admission.inputId)).toMatchObject({
      phase: "consumed",
      attempts: 1,
      lastTurnId: turn.request.turnId,
      lastBoundarySequence: 0,
      outcome: { type: "consumed" },
    });
    expect(session.state()).toBe("attached");
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("without a result completes without one", async () => {
    const { supervisor, session } = await openWith(functionExecutor(() => undefined));
    const admission = await acceptPrompt(session, "hello");
    expect(await admission.completion).toEqual({ type: "completedWithoutResult" });
    await supervisor.close();
  });

  it("that asks the host ends with the open question, and its inputs are consumed", async () => {
    const callback = { tool: "approve", args: { amount: 3 } };
    const { world, supervisor, session } = await openWith(functionExecutor(() => ({ callback })));
    const admission = await acceptPrompt(session, "pay", "k");
    expect(await admission.completion).toEqual({ type: "callbackPending", ...callback });
    expect((await session.input(admission.inputId))?.phase).toBe("consumed");
    const again = await session.accept({ kind: "prompt", text: "pay", idempotencyKey: "k" });
    if (again.outcome !== "deduplicated") throw new Error(`found ${again.outcome}`);
    expect(await again.completion).toEqual({ type: "callbackPending", ...callback });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("gets the conversation so far, page by page", async () => {
    const seen: unknown[] = [];
    const executor = functionExecutor(async ({ transcript }) => {
      seen.push({ entries: transcript.entries, list: await transcript.list({ after: 0 }) });
      return { messages: [{ role: "assistant", content: `answer ${transcript.entries}` }] };
    });
    const { supervisor, session } = await openWith(executor);
    for (const text of ["one", "two", "three"])
      await (await acceptPrompt(session, text)).completion;
    expect(seen).toMatchObject([
      { entries: 0, list: [] },
      { entries: 1, list: [] },
      { entries: 2, list: [{ messages: [{ content: "two" }, { content: "answer 1" }] }] },
    ]);
    await supervisor.close();
  });

  it("gets the session's metadata, which a later opening may replace", async () => {
    const world = new World();
    const contexts: unknown[] = [];
    const executor = functionExecutor(({ context }) => {
      contexts.push(context);
      return {};
    });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { executor, metadata: { tone: "dry" } });
    await (await acceptPrompt(session, "a")).completion;
    await supervisor.sessions.open("s", { metadata: { tone: "warm" } });
    await (await acceptPrompt(session, "b")).completion;
    await supervisor.close();
    const second = await world.open();
    const reopened = await second.sessions.open("s", { executor });
    await (await acceptPrompt(reopened, "c")).completion;
    expect(contexts).toEqual([{ tone: "dry" }, { tone: "warm" }, { tone: "warm" }]);
    await second.close();
  });

  it("keeps messages of inputs out of the transcript where their sender says so", async () => {
    const { supervisor, session } = await openWith(echoExecutor());
    const quiet = await session.accept({
      kind: "prompt",
      text: "hidden",
      visibility: { transcript: false, operator: true },
    });
    if (quiet.outcome !== "accepted") throw new Error(`found ${quiet.outcome}`);
    await quiet.completion;
    expect((await session.transcript()).items).toEqual([]);
    await supervisor.close();
  });
});

describe("what a turn takes", () => {
  it("a prompt has a turn to itself, consecutive events share one", async () => {
    const { world, supervisor, session } = await openWith(new ScriptedExecutor());
    await supervisor.close();
    const second = await world.open();
    const waiting = await second.sessions.open("s");
    const ids: string[] = [];
    const event = { kind: "externalEvent", eventType: "e", payload: null } as const;
    for (const request of [
      { kind: "prompt", text: "1" } as const,
      { kind: "prompt", text: "2" } as const,
      event,
      event,
      { kind: "prompt", text: "3" } as const,
      event,
    ]) {
      ids.push((await waiting.accept(request)).inputId);
    }
    await second.sessions.open("s", { executor: echoExecutor() });
    for (const id of ids) await waiting.completion(id);
    const [a, b, c, d, e, f] = ids;
    expect((await receiptIds(world)).map((list) => [...list])).toEqual([
      [a],
      [b],
      [c, d],
      [e],
      [f],
    ]);
    expect(session.id).toBe(waiting.id);
    await second.close();
    expect(await world.audit()).toEqual([]);
  });

  it("a prompt sent while a turn runs is taken after it without any further input", async () => {
    const executor = new ScriptedExecutor();
    const { supervisor, session } = await openWith(executor);
    const first = await acceptPrompt(session, "one");
    const turn = await executor.next();
    const second = await acceptPrompt(session, "two");
    turn.resolve({ result: 1 });
    (await executor.next()).resolve({ result: 2 });
    expect(await first.completion).toEqual({ type: "completed", result: 1 });
    expect(await second.completion).toEqual({ type: "completed", result: 2 });
    await supervisor.close();
  });

  it("a thousand inputs sent at random moments are all taken, each once, in their order", async () => {
    const taken: string[] = [];
    const executor = functionExecutor(async ({ inputs }) => {
      if (taken.length % 7 === 0) await untilRest();
      taken.push(...inputs.map((input) => input.inputId));
      return {};
    });
    const { world, supervisor, session } = await openWith(executor);
    const sent: string[] = [];
    const completions: Promise<Completion>[] = [];
    for (let index = 0; index < 1_000; index += 1) {
      const admission = await acceptPrompt(session, `${index}`);
      sent.push(admission.inputId);
      completions.push(admission.completion);
      if (index % 13 === 0) await untilRest();
    }
    await Promise.all(completions);
    expect(taken).toEqual(sent);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("a turn that fails", () => {
  it("is tried three times with growing pauses, then its input is abandoned (F-02)", async () => {
    const attempts: { attempt: number; atMs: number }[] = [];
    const world = new World();
    const executor = functionExecutor(({ attempt }) => {
      attempts.push({ attempt, atMs: world.clock.nowMs() });
      throw new Error("no luck");
    });
    const { supervisor, session } = await openWith(executor, world);
    const { inputId, completion } = await acceptPrompt(session, "hello");
    const failed = { type: "abandoned", reason: "apply failed: Error: no luck" };
    expect(await completion).toEqual({ ...failed, willRetry: true });
    expect(await session.completion(inputId)).toEqual({ ...failed, willRetry: true });
    expect(await session.completion(inputId)).toEqual({ ...failed, willRetry: false });
    expect(attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    const [first, second, third] = attempts.map(({ atMs }) => atMs);
    if (first === undefined || second === undefined || third === undefined)
      throw new Error("3 tries");
    expect(second - first).toBeGreaterThanOrEqual(75);
    expect(third - second).toBeGreaterThan(second - first);
    expect(await abandonment(session, inputId)).toEqual({
      type: "abandoned",
      reason: { code: "maxAttemptsExhausted", attempts: 3 },
    });
    expect(await session.completion(inputId)).toMatchObject({
      type: "abandoned",
      willRetry: false,
    });
    expect(session.state()).toBe("attached");
    await untilRest();
    expect(world.clock.pending).toBeLessThanOrEqual(1);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("gives way to other work, so that one bad input starves nobody (F-10)", async () => {
    const order: string[] = [];
    const executor = functionExecutor(({ inputs: [input] }) => {
      const text = input?.payload.kind === "prompt" ? input.payload.text : "";
      order.push(text);
      if (text === "bad") throw new Error("no");
      return {};
    });
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s");
    const bad = await acceptPrompt(session, "bad");
    const good = [await acceptPrompt(session, "g1"), await acceptPrompt(session, "g2")];
    await supervisor.sessions.open("s", { executor });
    await Promise.all(good.map(({ completion }) => completion));
    expect(order.slice(0, 3)).toEqual(["bad", "g1", "g2"]);
    await bad.completion;
    while ((await session.input(bad.inputId))?.phase !== "abandoned") {
      await session.completion(bad.inputId);
    }
    expect(order).toEqual(["bad", "g1", "g2", "bad", "bad"]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("puts a batch back in its order", async () => {
    const batches: number[][] = [];
    const executor = functionExecutor(({ inputs }) => {
      batches.push(inputs.map((input) => input.sequence));
      if (batches.length === 1) throw new Error("once");
      return {};
    });
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s");
    const event = { kind: "externalEvent", eventType: "e", payload: null } as const;
    const ids = [];
    for (let index = 0; index < 3; index += 1) ids.push((await session.accept(event)).inputId);
    await supervisor.sessions.open("s", { executor });
    for (const id of ids) await session.completion(id);
    for (const id of ids) await session.completion(id);
    expect(batches).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("rolls back durably: the store knows the attempt before the next one", async () => {
    const executor = new ScriptedExecutor();
    const { session } = await openWith(executor, new World({ clock: "held" }));
    const { inputId, completion } = await acceptPrompt(session, "hello");
    (await executor.next()).reject(new Error("no"));
    await completion;
    expect(await session.input(inputId)).toMatchObject({ phase: "queued", attempts: 1 });
    expect(session.state()).toBe("attached");
  });

  const answers: readonly (readonly [string, unknown])[] = [
    ["a text", "done"],
    ["null", null],
    ["messages that are no list", { messages: "hi" }],
    ["a result that is not JSON", { result: () => 1 }],
    ["a result with NaN", { result: { a: Number.NaN } }],
    ["messages with a Date", { messages: [{ at: new Date(0) }] }],
    ["a lone surrogate", { result: "\ud800" }],
  ];
  for (const [title, answer] of answers) {
    it(`an executor that answers ${title} has failed its attempt, and nothing of it is stored`, async () => {
      const executor: Executor = { apply: async () => answer as never };
      const { world, supervisor, session } = await openWith(executor);
      const { inputId, completion } = await acceptPrompt(session, "hello");
      expect(await completion).toMatchObject({ type: "abandoned", willRetry: true });
      await session.completion(inputId);
      await session.completion(inputId);
      expect((await session.input(inputId))?.phase).toBe("abandoned");
      expect(await receiptIds(world)).toEqual([]);
      await supervisor.close();
      expect(await world.audit()).toEqual([]);
    });
  }

  it("an answer that is no object is named by its kind: its text is nobody's to log", async () => {
    const executor: Executor = { apply: async () => "secret" as never };
    const { session } = await openWith(executor);
    const { completion } = await acceptPrompt(session, "hello");
    expect(await completion).toMatchObject({ reason: expect.stringContaining("a string") });
    expect(JSON.stringify(await completion)).not.toContain("secret");
  });

  it("by a factory of executors that throws has failed its attempt", async () => {
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", {
      executor: () => {
        throw new Error("no executor today");
      },
    });
    const { completion } = await acceptPrompt(session, "hello");
    expect(await completion).toMatchObject({
      type: "abandoned",
      reason: expect.stringContaining("no executor today"),
    });
    await supervisor.close();
  });
});

describe("a turn that is cancelled", () => {
  it("S-001-06: cancelling with no turn in progress is an error", async () => {
    const { supervisor, session } = await openWith(echoExecutor());
    const error = await session.cancelTurn().catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(NotReadyError);
    expect(error).toMatchObject({ state: "attached" });
    await supervisor.close();
  });

  it("gives its inputs up, aborts the signal after the commit, and the late answer changes nothing", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const { inputId, completion } = await acceptPrompt(session, "hello");
    const turn = await executor.next();
    const next = await acceptPrompt(session, "next");
    const phases: (string | undefined)[] = [];
    turn.request.signal.addEventListener("abort", async () => {
      const row = (await world.rows("session", "s", "input"))[0]?.value;
      phases.push((row as { snapshot?: { value?: string } } | undefined)?.snapshot?.value);
    });
    await session.cancelTurn();
    expect(await completion).toEqual({ type: "cancelled" });
    turn.resolve({ result: "too late" });
    const second = await executor.next();
    second.resolve({ result: "in time" });
    expect(await next.completion).toEqual({ type: "completed", result: "in time" });
    expect(phases).toEqual(["abandoned"]);
    expect(executor.cancels).toBe(1);
    expect(await abandonment(session, inputId)).toEqual({
      type: "abandoned",
      reason: { code: "cancelled" },
    });
    expect(await session.receipt(turn.request.turnId, 0)).toBeUndefined();
    expect(await receiptIds(world)).toEqual([[next.inputId]]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("does not hold up the session when its executor never comes back", async () => {
    const world = new World({ clock: "held" });
    const executor = new ScriptedExecutor();
    const { session } = await openWith(executor, world);
    await acceptPrompt(session, "hangs");
    await executor.next();
    const next = await acceptPrompt(session, "next");
    await session.cancelTurn();
    await world.clock.advance(9_999);
    expect(executor.turns).toHaveLength(1);
    await world.clock.advance(1);
    (await executor.next()).resolve({ result: "on" });
    expect(await next.completion).toEqual({ type: "completed", result: "on" });
  });

  it("a cancel whose commit fails changes nothing: the turn goes on and completes", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const { completion } = await acceptPrompt(session, "hello");
    const turn = await executor.next();
    world.store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
    await expect(session.cancelTurn()).rejects.toMatchObject({
      code: "HOLDFAST_OPERATION",
      cause: { code: "HOLDFAST_STORE_UNAVAILABLE" },
    });
    expect(turn.request.signal.aborted).toBe(false);
    turn.resolve({ result: "done" });
    expect(await completion).toEqual({ type: "completed", result: "done" });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("a turn whose proof cannot be written", () => {
  it("tells its waiters both facts, invents nothing, and its input is taken again (F-12)", async () => {
    const requests: TurnRequest[] = [];
    const executor = functionExecutor((request) => {
      requests.push(request);
      return { result: requests.length };
    });
    const world = new World();
    const { supervisor, session } = await openWith(executor, world);
    const isBoundary = (call: { keys: readonly (readonly string[])[] }) =>
      call.keys.some((key) => key[2] === "receipt");
    world.store.inject({ on: "commit", fault: "unavailableBefore", when: isBoundary, times: 6 });
    const { inputId, completion } = await acceptPrompt(session, "hello");
    expect(await completion).toMatchObject({
      type: "completedWithFinalizationFailure",
      result: 1,
      error: expect.stringContaining("store"),
    });
    expect(await session.completion(inputId)).toEqual({ type: "completed", result: 2 });
    world.store.requireStruck();
    expect(requests.map((request) => request.attempt)).toEqual([1, 2]);
    expect(requests[0]?.turnId).not.toBe(requests[1]?.turnId);
    expect((await session.input(inputId))?.recoveries).toBe(1);
    expect(await receiptIds(world)).toEqual([[inputId]]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("and whose acknowledgement is lost is done once: the evidence is found", async () => {
    let turns = 0;
    const executor = functionExecutor(() => ({ result: ++turns }));
    const world = new World();
    const { supervisor, session } = await openWith(executor, world);
    world.store.inject({
      on: "commit",
      fault: "unavailableAfter",
      when: (call) => call.keys.some((key) => key[2] === "receipt"),
    });
    const { completion } = await acceptPrompt(session, "hello");
    expect(await completion).toEqual({ type: "completed", result: 1 });
    world.store.requireStruck();
    expect(turns).toBe(1);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});
