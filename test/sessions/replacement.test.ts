import { describe, expect, it } from "vitest";
import type { InputRequest, Session } from "../../src/index.js";
import { untilRest } from "../test-clock.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, World } from "../world.js";

async function openSession(world = new World(), silentIntents: readonly string[] = []) {
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s", { silentIntents });
  return { world, supervisor, session };
}

async function accepted(session: Session, request: InputRequest) {
  const admission = await session.accept(request);
  if (admission.outcome !== "accepted") throw new Error(`found ${admission.outcome}`);
  return admission;
}

const progress = (requestId: string, phase: string): InputRequest => ({
  kind: "peer",
  body: phase,
  convention: { type: "responseProgress", requestId, phase },
});

describe("supersession", () => {
  it("the newer input takes the older one's place, both rows in one commit", async () => {
    const { world, supervisor, session } = await openSession();
    const old = await accepted(session, { kind: "prompt", text: "v1", supersessionKey: "draft" });
    const commits = world.store.counts.commit;
    const next = await accepted(session, { kind: "prompt", text: "v2", supersessionKey: "draft" });
    expect(world.store.counts.commit).toBe(commits + 1);
    expect(await old.completion).toEqual({
      type: "terminated",
      reason: `superseded by input ${next.inputId}`,
    });
    expect((await session.input(old.inputId))?.outcome).toEqual({
      type: "superseded",
      by: next.inputId,
    });
    await supervisor.sessions.open("s", { executor: echoExecutor() });
    expect(await next.completion).toEqual({ type: "completed", result: ["v2"] });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("does not reach another kind, another key, or another session", async () => {
    const { supervisor, session } = await openSession();
    const other = await supervisor.sessions.open("t");
    await accepted(session, { kind: "prompt", text: "a", supersessionKey: "k" });
    await accepted(session, {
      kind: "flowStep",
      stepId: "s",
      instructions: "b",
      supersessionKey: "k",
    });
    await accepted(session, { kind: "prompt", text: "c", supersessionKey: "l" });
    await accepted(other, { kind: "prompt", text: "d", supersessionKey: "k" });
    const phases = (await session.inputs()).items.map((input) => input.phase);
    expect(phases).toEqual(["queued", "queued", "queued"]);
  });

  it("leaves an input alone that a turn has taken", async () => {
    const { supervisor, session } = await openSession();
    const executor = new ScriptedExecutor();
    await supervisor.sessions.open("s", { executor });
    const old = await accepted(session, { kind: "prompt", text: "v1", supersessionKey: "k" });
    const turn = await executor.next();
    const next = await accepted(session, { kind: "prompt", text: "v2", supersessionKey: "k" });
    turn.resolve({ result: 1 });
    expect(await old.completion).toEqual({ type: "completed", result: 1 });
    (await executor.next()).resolve({ result: 2 });
    expect(await next.completion).toEqual({ type: "completed", result: 2 });
    await supervisor.close();
  });

  it("whose commit fails replaces nothing", async () => {
    const { world, session } = await openSession();
    const old = await accepted(session, { kind: "prompt", text: "v1", supersessionKey: "k" });
    world.store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
    await expect(
      session.accept({ kind: "prompt", text: "v2", supersessionKey: "k" }),
    ).rejects.toMatchObject({ code: "HOLDFAST_OPERATION" });
    expect((await session.input(old.inputId))?.phase).toBe("queued");
    expect(await world.audit()).toEqual([]);
  });

  it("needs no room in a full queue, since one goes as one comes", async () => {
    const { session } = await openSession(new World({ limits: { queueInputsMax: 1 } }));
    await accepted(session, { kind: "prompt", text: "v1", supersessionKey: "k" });
    await accepted(session, { kind: "prompt", text: "v2", supersessionKey: "k" });
    await expect(session.accept({ kind: "prompt", text: "x" })).rejects.toMatchObject({
      code: "HOLDFAST_CAPACITY",
    });
  });

  it("an idempotency key of a superseded input still names it", async () => {
    const { session } = await openSession();
    const first = {
      kind: "prompt",
      text: "v1",
      supersessionKey: "k",
      idempotencyKey: "i",
    } as const;
    const old = await accepted(session, first);
    await accepted(session, { kind: "prompt", text: "v2", supersessionKey: "k" });
    expect(await session.accept(first)).toMatchObject({
      outcome: "deduplicated",
      existingId: old.inputId,
      state: "superseded",
    });
  });
});

describe("progress reports of one request", () => {
  it("are coalesced into the newest, and ride along with what drives", async () => {
    const { world, supervisor, session } = await openSession();
    const executor = new ScriptedExecutor();
    await supervisor.sessions.open("s", { executor });
    const first = await accepted(session, progress("r-1", "10 %"));
    const other = await accepted(session, progress("r-2", "50 %"));
    const second = await accepted(session, progress("r-1", "20 %"));
    await untilRest();
    expect(executor.turns).toHaveLength(0);
    expect((await session.input(first.inputId))?.outcome).toEqual({
      type: "coalesced",
      into: second.inputId,
    });
    const prompt = await acceptPrompt(session, "how far?");
    const turn = await executor.next();
    expect(turn.request.inputs.map((input) => input.inputId)).toEqual([
      other.inputId,
      second.inputId,
      prompt.inputId,
    ]);
    turn.resolve({});
    await prompt.completion;
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("silent intents", () => {
  const request = (intent: string): InputRequest => ({
    kind: "peer",
    body: intent,
    convention: { type: "request", requestId: `r-${intent}`, intent },
  });

  it("do not wake the session; they ride along with the next input that does", async () => {
    const { world, supervisor, session } = await openSession(new World(), ["heartbeat"]);
    const executor = new ScriptedExecutor();
    await supervisor.sessions.open("s", { executor });
    const silent = await accepted(session, request("heartbeat"));
    await untilRest();
    expect(executor.turns).toHaveLength(0);
    const loud = await accepted(session, request("question"));
    const turn = await executor.next();
    expect(turn.request.inputs.map((input) => input.inputId)).toEqual([
      silent.inputId,
      loud.inputId,
    ]);
    turn.resolve({});
    await loud.completion;
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("stay silent after a restart", async () => {
    const { world, session } = await openSession(new World(), ["heartbeat"]);
    await accepted(session, request("heartbeat"));
    world.restart();
    const later = await world.open();
    const executor = new ScriptedExecutor();
    const reopened = await later.sessions.open("s", { executor });
    await untilRest();
    expect(executor.turns).toHaveLength(0);
    const loud = await acceptPrompt(reopened, "hello");
    const turn = await executor.next();
    expect(turn.request.inputs).toHaveLength(2);
    turn.resolve({});
    await loud.completion;
    await later.close();
  });
});
