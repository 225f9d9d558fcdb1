import { describe, expect, it } from "vitest";
import { type Executor, functionExecutor, type Session } from "../../src/index.js";
import { TestClock, untilRest } from "../test-clock.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, World } from "../world.js";

async function openWith(executor: Executor, world = new World()) {
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s", { executor });
  return { world, supervisor, session };
}

async function steer(session: Session, text: string) {
  const admission = await session.accept({ kind: "prompt", text, handling: "steer" });
  if (admission.outcome !== "accepted") throw new Error(`found ${admission.outcome}`);
  return admission;
}

describe("steering a turn", () => {
  it("content sent during a turn reaches it at its next boundary, exactly once (F-16)", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const prompt = await acceptPrompt(session, "write a poem");
    const { request, resolve } = await executor.next();
    const waiting = request.steered();
    const first = await steer(session, "shorter");
    const second = await steer(session, "and rhymed");
    expect(await waiting).toBe(true);
    const joined = await request.checkpoint({ messages: [{ role: "assistant", content: "A" }] });
    expect(joined.map((input) => input.inputId)).toEqual([first.inputId, second.inputId]);
    expect(joined.map((input) => input.attempt)).toEqual([1, 1]);
    expect((await session.input(prompt.inputId))?.phase).toBe("consumed");
    expect((await session.input(first.inputId))?.phase).toBe("staged");
    expect(session.state()).toBe("running");
    resolve({ messages: [{ role: "assistant", content: "B" }], result: "poem" });
    const done = { type: "completed", result: "poem" };
    expect(await prompt.completion).toEqual(done);
    expect(await first.completion).toEqual(done);
    expect(await second.completion).toEqual(done);

    expect(await session.receipt(request.turnId, 0)).toMatchObject({
      sequence: 0,
      boundary: "turnStart",
      inputIds: [prompt.inputId],
      messages: 2,
    });
    expect(await session.receipt(request.turnId, 1)).toMatchObject({
      sequence: 1,
      boundary: "turnCheckpoint",
      inputIds: [first.inputId, second.inputId],
      messages: 5,
    });
    const said = (await session.transcript()).items.flatMap((entry) => entry.messages);
    expect(said.map((message) => message.content)).toEqual([
      "write a poem",
      "A",
      "shorter",
      "and rhymed",
      "B",
    ]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("content that no boundary took opens the next turn, before what is queued", async () => {
    const executor = new ScriptedExecutor();
    const { supervisor, session } = await openWith(executor);
    await acceptPrompt(session, "one");
    const turn = await executor.next();
    await acceptPrompt(session, "queued");
    await steer(session, "steered");
    turn.resolve({});
    const texts = [];
    for (let index = 0; index < 2; index += 1) {
      const next = await executor.next();
      texts.push(...next.request.inputs.map((input) => input.payload));
      next.resolve({});
    }
    expect(texts).toMatchObject([{ text: "steered" }, { text: "queued" }]);
    await supervisor.close();
  });

  it("a turn that ends tells those who wait to be steered that nothing came", async () => {
    const executor = new ScriptedExecutor();
    const { supervisor, session } = await openWith(executor);
    const { completion } = await acceptPrompt(session, "one");
    const { request, resolve } = await executor.next();
    const waiting = request.steered();
    resolve({});
    await completion;
    expect(await waiting).toBe(false);
    expect(await request.steered()).toBe(false);
    await supervisor.close();
  });

  it("a continuation steers and stays out of the transcript; a progress report does not interrupt", async () => {
    const executor = new ScriptedExecutor();
    const { supervisor, session } = await openWith(executor);
    await acceptPrompt(session, "one");
    const { request, resolve } = await executor.next();
    let isSteered = false;
    const waiting = request.steered().then((value) => {
      isSteered = value;
    });
    const report = await session.accept({
      kind: "peer",
      body: "10 %",
      convention: { type: "responseProgress", requestId: "r", phase: "p" },
    });
    await untilRest();
    expect(isSteered).toBe(false);
    const go = await session.accept({ kind: "continuation", reason: "tool answered" });
    await waiting;
    expect(isSteered).toBe(true);
    const joined = await request.checkpoint();
    expect(joined.map((input) => input.inputId)).toEqual([report.inputId, go.inputId]);
    resolve({});
    await untilRest();
    const said = (await session.transcript()).items.flatMap((entry) => entry.messages);
    expect(said.map((message) => message.content)).toEqual(["one", "10 %"]);
    await supervisor.close();
  });
});

describe("a checkpoint", () => {
  it("without inputs left only adds messages: no receipt is minted for them (F-03)", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const { completion } = await acceptPrompt(session, "one");
    const { request, resolve } = await executor.next();
    await request.checkpoint({ messages: [{ role: "assistant", content: "A" }] });
    await request.checkpoint({ messages: [{ role: "assistant", content: "B" }] });
    const commits = world.store.counts.commit;
    expect(await request.checkpoint()).toEqual([]);
    expect(world.store.counts.commit).toBe(commits);
    resolve({ messages: [{ role: "assistant", content: "C" }], result: 3 });
    expect(await completion).toEqual({ type: "completed", result: 3 });
    expect(await world.rows("session", "s", "receipt")).toHaveLength(1);
    expect((await session.transcript()).items.map((entry) => entry.receipt)).toEqual([
      0,
      null,
      null,
    ]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("is proof: a turn that fails behind it does not do what it consumed again", async () => {
    const seen: string[][] = [];
    const executor = functionExecutor(async ({ inputs, checkpoint, attempt }) => {
      seen.push(inputs.map((input) => input.inputId));
      const joined = await checkpoint();
      seen.push(joined.map((input) => input.inputId));
      if (attempt === 1 && joined.length > 0) throw new Error("later");
      return { result: "fine" };
    });
    const world = new World();
    const supervisor = await world.open();
    const waiting = await supervisor.sessions.open("s");
    const gate = world.store.hold({
      on: "commit",
      when: (call) => call.keys.some((k) => k[2] === "turn"),
    });
    const prompt = await acceptPrompt(waiting, "one");
    await supervisor.sessions.open("s", { executor });
    await gate.reached;
    const steering = steer(waiting, "two");
    gate.release();
    const extra = await steering;
    expect(await prompt.completion).toEqual({ type: "completedWithoutResult" });
    expect(await extra.completion).toMatchObject({ type: "abandoned", willRetry: true });
    expect(await waiting.completion(extra.inputId)).toEqual({ type: "completed", result: "fine" });
    expect(seen).toEqual([[prompt.inputId], [extra.inputId], [extra.inputId], []]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("survives a crash behind it: what it consumed stays consumed, what joined waits again", async () => {
    const executor = new ScriptedExecutor();
    const { world, session } = await openWith(executor);
    const prompt = await acceptPrompt(session, "one");
    const { request } = await executor.next();
    const extra = await steer(session, "two");
    await request.checkpoint();
    world.store.inject({ on: "commit", fault: "crashBefore" });
    void request.checkpoint({ messages: [{ role: "assistant", content: "lost" }] });
    await world.store.crashed;
    expect(await world.audit()).toEqual([]);
    world.restart();
    const later = await world.open();
    const reopened = await later.sessions.open("s", { executor: echoExecutor() });
    expect(await reopened.completion(extra.inputId)).toEqual({
      type: "completed",
      result: ["two"],
    });
    expect(await reopened.completion(prompt.inputId)).toEqual({ type: "completedWithoutResult" });
    expect((await reopened.input(prompt.inputId))?.attempts).toBe(1);
    await later.close();
    expect(await world.audit()).toEqual([]);
  });

  it("whose commit fails tells the executor, changes nothing, and can be tried again", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const { completion, inputId } = await acceptPrompt(session, "one");
    const { request, resolve } = await executor.next();
    world.store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
    await expect(request.checkpoint()).rejects.toMatchObject({ code: "HOLDFAST_OPERATION" });
    expect((await session.input(inputId))?.phase).toBe("staged");
    await request.checkpoint();
    expect((await session.input(inputId))?.phase).toBe("consumed");
    resolve({ result: 1 });
    expect(await completion).toEqual({ type: "completed", result: 1 });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("of a turn that was cancelled is refused", async () => {
    const executor = new ScriptedExecutor();
    const { supervisor, session } = await openWith(executor);
    await acceptPrompt(session, "one");
    const { request, reject } = await executor.next();
    await session.cancelTurn();
    await expect(request.checkpoint()).rejects.toMatchObject({ code: "HOLDFAST_NOT_READY" });
    reject(new Error("aborted"));
    await supervisor.close();
  });

  it("that the executor does not await is a failed attempt, and nothing is lost", async () => {
    let turns = 0;
    const executor = functionExecutor(async ({ checkpoint }) => {
      turns += 1;
      const pending = checkpoint();
      if (turns === 1) return {};
      await pending;
      return { result: turns };
    });
    const { world, supervisor, session } = await openWith(executor);
    const { inputId } = await acceptPrompt(session, "one");
    await untilRest();
    await supervisor.close();
    expect((await world.rows("session", "s", "receipt")).length).toBe(1);
    expect(turns).toBe(1);
    const row = (await world.rows("session", "s", "input"))[0]?.value;
    expect(row).toMatchObject({ id: inputId, snapshot: { value: "consumed" } });
    expect(await world.audit()).toEqual([]);
  });

  it("a duplicate of what it consumed hears how the turn ends", async () => {
    const executor = new ScriptedExecutor();
    const { supervisor, session } = await openWith(executor);
    await acceptPrompt(session, "one", "k");
    const { request, resolve } = await executor.next();
    await request.checkpoint();
    const again = await session.accept({ kind: "prompt", text: "one", idempotencyKey: "k" });
    if (again.outcome !== "deduplicated") throw new Error(`found ${again.outcome}`);
    resolve({ result: "end" });
    expect(await again.completion).toEqual({ type: "completed", result: "end" });
    await supervisor.close();
  });
});

describe("a turn whose executor takes its time to come", () => {
  it("is reported, and given up after its bound: its inputs are abandoned in one commit", async () => {
    const clock = new TestClock({ mode: "held" });
    const world = new World({ clock: "held" });
    const supervisor = await world.open({ clock });
    let asked = 0;
    const session = await supervisor.sessions.open("s", {
      executor: () => {
        asked += 1;
        return asked === 1 ? new Promise<never>(() => {}) : echoExecutor();
      },
    });
    const { inputId, completion } = await acceptPrompt(session, "one");
    await clock.advance(60 * 60 * 1_000 - 1);
    expect((await session.input(inputId))?.phase).toBe("staged");
    const commits = world.store.counts.commit;
    await clock.advance(1);
    expect(await completion).toMatchObject({ type: "abandoned", willRetry: false });
    expect(world.store.counts.commit).toBe(commits + 1);
    expect((await session.input(inputId))?.outcome).toEqual({
      type: "abandoned",
      reason: { code: "neverExecuted" },
    });
    expect(await world.audit()).toEqual([]);
  });

  it("begins when it is there, and can be cancelled before", async () => {
    const world = new World({ clock: "held" });
    const supervisor = await world.open();
    const made: ((executor: Executor) => void)[] = [];
    const session = await supervisor.sessions.open("s", {
      executor: () => new Promise<Executor>((resolve) => made.push(resolve)),
    });
    const first = await acceptPrompt(session, "one");
    await untilRest();
    await session.cancelTurn();
    expect(await first.completion).toEqual({ type: "cancelled" });
    const second = await acceptPrompt(session, "two");
    await untilRest();
    for (const resolve of made) resolve(echoExecutor());
    expect(await second.completion).toEqual({ type: "completed", result: ["two"] });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});
