import { describe, expect, it } from "vitest";
import { ClosedError, functionExecutor, Supervisor, ValidationError } from "../../src/index.js";
import type { StoreCall } from "../../src/store/index.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, World } from "../world.js";

async function openWith(executor: ScriptedExecutor, world = new World({ clock: "held" })) {
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s", { executor });
  return { world, supervisor, session };
}

describe("closing with drain", () => {
  it("lets the turn in progress end, takes no new work, and leaves what waits for later", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const first = await acceptPrompt(session, "one");
    const turn = await executor.next();
    const second = await acceptPrompt(session, "two");
    const closing = supervisor.close();
    await expect(session.accept({ kind: "prompt", text: "late" })).rejects.toThrow(ClosedError);
    expect(supervisor.state()).toBe("draining");
    turn.resolve({ result: 1 });
    expect(await closing).toEqual({ isClosed: true, interrupted: [], left: [] });
    expect(await first.completion).toEqual({ type: "completed", result: 1 });
    expect(await second.completion).toEqual({ type: "terminated", reason: "supervisor closed" });
    expect(supervisor.state()).toBe("closed");
    expect(executor.isStopped).toBe(true);
    expect(executor.turns).toHaveLength(1);

    world.restart();
    const later = await world.open();
    const reopened = await later.sessions.open("s", { executor: echoExecutor() });
    expect(await reopened.completion(second.inputId)).toEqual({
      type: "completed",
      result: ["two"],
    });
    await later.close();
    expect(await world.audit()).toEqual([]);
  });

  it("reports what did not end in time, stays closable, and cuts it off when asked again", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const { inputId } = await acceptPrompt(session, "hangs");
    const turn = await executor.next();
    const closing = supervisor.close({ timeoutMs: 1_000 });
    await world.clock.advance(1_000);
    expect(await closing).toEqual({ isClosed: false, interrupted: [], left: ["s"] });
    expect(supervisor.state()).toBe("draining");
    expect(turn.request.signal.aborted).toBe(false);

    const again = supervisor.close({ mode: "cancel-and-drain", timeoutMs: 1_000 });
    await world.clock.advance(1_000);
    expect(await again).toEqual({ isClosed: true, interrupted: ["s"], left: ["s"] });
    expect(turn.request.signal.aborted).toBe(true);
    expect(await supervisor.close()).toEqual(await again);
    turn.resolve({ result: "far too late" });
    const row = (await world.rows("session", "s", "input"))[0]?.value;
    expect(row).toMatchObject({ id: inputId, snapshot: { value: "queued" } });
    expect(await world.audit()).toEqual([]);
  });
});

describe("closing with cancel-and-drain", () => {
  it("aborts turns; their inputs wait again and are not recorded as cancelled", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    const { inputId, completion } = await acceptPrompt(session, "one");
    const turn = await executor.next();
    turn.request.signal.addEventListener("abort", () => turn.reject(new Error("aborted")));
    const report = await supervisor.close({ mode: "cancel-and-drain" });
    expect(report).toEqual({ isClosed: true, interrupted: ["s"], left: [] });
    expect(await completion).toEqual({ type: "terminated", reason: "supervisor closed" });
    world.restart();
    const later = await world.open();
    const reopened = await later.sessions.open("s", { executor: echoExecutor() });
    expect(await reopened.completion(inputId)).toEqual({ type: "completed", result: ["one"] });
    expect(await reopened.input(inputId)).toMatchObject({ attempts: 2, recoveries: 1 });
    await later.close();
    expect(await world.audit()).toEqual([]);
  });

  for (const point of ["before", "after"] as const) {
    it(`cuts off a turn whose staging is not durable yet, held ${point} the commit`, async () => {
      const executor = new ScriptedExecutor();
      const { world, supervisor, session } = await openWith(executor);
      const isStaging = (call: StoreCall) => call.keys.some((key) => key.includes("turn"));
      const gate = world.store.hold({ on: "commit", when: isStaging, point });
      const { inputId } = await acceptPrompt(session, "one");
      await gate.reached;
      const closing = supervisor.close({ mode: "cancel-and-drain" });
      gate.release();
      // An executor that never comes back is waited for; it is none of what this test is about.
      void executor.next().then(({ request, reject }) => {
        const end = () => reject(new Error("aborted"));
        if (request.signal.aborted) end();
        else request.signal.addEventListener("abort", end);
      });
      expect(await closing).toEqual({ isClosed: true, interrupted: ["s"], left: [] });
      const row = (await world.rows("session", "s", "input"))[0]?.value;
      expect(row).toMatchObject({ id: inputId, snapshot: { value: "queued" } });
      expect(await world.audit()).toEqual([]);
    });
  }

  it("ends in time where the store never answers", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor);
    await acceptPrompt(session, "one");
    await executor.next();
    const gate = world.store.hold({ on: "commit", times: 1_000 });
    const closing = supervisor.close({ mode: "cancel-and-drain", timeoutMs: 1_000 });
    await gate.reached;
    await world.clock.advance(1_000);
    expect(await closing).toEqual({ isClosed: true, interrupted: [], left: ["s"] });
  });

  it("over a store that is gone still ends, and recovery puts the turn back", async () => {
    const executor = new ScriptedExecutor();
    const { world, supervisor, session } = await openWith(executor, new World());
    const { inputId } = await acceptPrompt(session, "one");
    const turn = await executor.next();
    turn.request.signal.addEventListener("abort", () => turn.reject(new Error("aborted")));
    world.store.inject({ on: "commit", fault: "unavailableBefore", times: 1_000 });
    const report = await supervisor.close({ mode: "cancel-and-drain" });
    expect(report.isClosed).toBe(true);
    world.restart();
    const later = await world.open();
    const reopened = await later.sessions.open("s", { executor: echoExecutor() });
    expect(await reopened.completion(inputId)).toEqual({ type: "completed", result: ["one"] });
    await later.close();
  });
});

describe("a supervisor that is closed", () => {
  it("closes once however often it is asked, and answers with the same report", async () => {
    const world = new World();
    const supervisor = await world.open();
    const [a, b] = await Promise.all([supervisor.close(), supervisor.close()]);
    expect(a).toEqual(b);
    expect(await supervisor.close()).toEqual(a);
  });

  it("refuses every call with a ClosedError", async () => {
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s");
    await supervisor.close();
    const calls = [
      () => supervisor.sessions.open("s"),
      () => supervisor.sessions.get("s"),
      () => supervisor.sessions.list(),
      () => supervisor.sessions.active(),
      () => supervisor.sessions.recover("s"),
      () => session.accept({ kind: "prompt", text: "x" }),
      () => session.cancelTurn(),
      () => session.actor(),
    ];
    for (const call of calls) {
      await expect((async () => call())()).rejects.toMatchObject({ code: "HOLDFAST_CLOSED" });
    }
  });

  it("leaves no timer behind, and nothing keeps its process alive", async () => {
    const world = new World({ clock: "held" });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", {
      executor: functionExecutor(() => {
        throw new Error("no");
      }),
    });
    await (await acceptPrompt(session, "x")).completion;
    expect(world.clock.pending).toBeGreaterThan(0);
    await supervisor.close();
    expect(world.clock.pending).toBe(0);
  });

  it("awaits the commits that were accepted", async () => {
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s");
    const gate = world.store.hold({ on: "commit" });
    const pending = session.accept({ kind: "prompt", text: "x" });
    await gate.reached;
    let isClosed = false;
    const closing = supervisor.close().then(() => {
      isClosed = true;
    });
    for (let round = 0; round < 5; round += 1) await new Promise((r) => setImmediate(r));
    expect(isClosed).toBe(false);
    gate.release();
    expect((await pending).outcome).toBe("accepted");
    await closing;
  });

  it("is closed at the end of an `await using` block", async () => {
    const world = new World();
    let kept: Supervisor | undefined;
    {
      await using supervisor = await world.open();
      kept = supervisor;
      await supervisor.sessions.open("s");
    }
    expect(kept.state()).toBe("closed");
  });
});

describe("limits given at opening", () => {
  for (const [title, limits, path] of [
    ["a limit that does not exist", { queueInputMax: 1 }, "/queueInputMax"],
    ["a negative limit", { queueInputsMax: -1 }, "/queueInputsMax"],
    ["a limit that is no whole number", { idleMs: 0.5 }, "/idleMs"],
    ["a limit that is a text", { idleMs: "5" }, "/idleMs"],
  ] as const) {
    it(`${title} is refused, with its name`, async () => {
      const error = await Supervisor.open({
        store: new World().store,
        limits: limits as never,
      }).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(ValidationError);
      expect((error as ValidationError).issues.map((issue) => issue.path)).toEqual([path]);
    });
  }
});
