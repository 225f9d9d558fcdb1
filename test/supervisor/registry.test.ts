import { describe, expect, it } from "vitest";
import { CorruptionError, functionExecutor, type Logger, Supervisor } from "../../src/index.js";
import { keys } from "../../src/sessions/records.js";
import { untilRest } from "../test-clock.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, World } from "../world.js";

describe("two supervisors on one store", () => {
  it("serve different sessions side by side", async () => {
    const world = new World();
    const [one, two] = [await world.open(), await world.open()];
    const a = await one.sessions.open("a", { executor: echoExecutor() });
    const b = await two.sessions.open("b", { executor: echoExecutor() });
    const [x, y] = await Promise.all([acceptPrompt(a, "x"), acceptPrompt(b, "y")]);
    expect(await x.completion).toEqual({ type: "completed", result: ["x"] });
    expect(await y.completion).toEqual({ type: "completed", result: ["y"] });
    await one.close();
    await two.close();
    expect(await world.audit()).toEqual([]);
  });

  it("the one that opens a session last has it; the other is fenced, parked, and writes nothing", async () => {
    const world = new World();
    const [one, two] = [await world.open(), await world.open()];
    const mine = await one.sessions.open("s");
    const { inputId, completion } = await acceptPrompt(mine, "hello", "k");
    const theirs = await two.sessions.open("s", { executor: echoExecutor() });
    expect(await theirs.completion(inputId)).toEqual({ type: "completed", result: ["hello"] });

    const before = await world.rows();
    await expect(mine.accept({ kind: "prompt", text: "late" })).rejects.toMatchObject({
      cause: { code: "HOLDFAST_STORE_FENCED" },
    });
    expect(await world.rows()).toEqual(before);
    expect(await completion).toEqual({
      type: "terminated",
      reason: "another supervisor holds the session",
    });
    await expect(mine.accept({ kind: "prompt", text: "later" })).rejects.toMatchObject({
      code: "HOLDFAST_CLOSED",
      cause: { code: "HOLDFAST_STORE_FENCED" },
    });
    await one.close();
    await two.close();
    expect(await world.audit()).toEqual([]);
  });

  it("opening it again takes it back", async () => {
    const world = new World();
    const [one, two] = [await world.open(), await world.open()];
    const mine = await one.sessions.open("s", { executor: echoExecutor() });
    await two.sessions.open("s");
    await mine.accept({ kind: "prompt", text: "x" }).catch(() => undefined);
    await one.sessions.open("s", { executor: echoExecutor() });
    const { completion } = await acceptPrompt(mine, "again");
    expect(await completion).toEqual({ type: "completed", result: ["again"] });
    await one.close();
    await two.close();
  });

  it("a turn of the one that lost the session is not committed, and its executor is aborted", async () => {
    const world = new World();
    const [one, two] = [await world.open(), await world.open()];
    const executor = new ScriptedExecutor();
    const mine = await one.sessions.open("s", { executor });
    const { inputId } = await acceptPrompt(mine, "hello");
    const turn = await executor.next();
    const theirs = await two.sessions.open("s", { executor: echoExecutor() });
    turn.resolve({ result: "stale" });
    expect(await theirs.completion(inputId)).toEqual({ type: "completed", result: ["hello"] });
    await untilRest();
    expect(executor.isStopped).toBe(true);
    expect(await world.rows("session", "s", "receipt")).toHaveLength(1);
    await one.close();
    await two.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("a session whose runtime breaks", () => {
  it("comes back from its last commit by itself; who waited still hears the outcome", async () => {
    const world = new World();
    const supervisor = await world.open();
    const executor = new ScriptedExecutor();
    const session = await supervisor.sessions.open("s", { executor });
    const first = await acceptPrompt(session, "one");
    const second = await acceptPrompt(session, "two");
    const turn = await executor.next();
    world.store.inject({ on: "commit", fault: "conflict" });
    turn.resolve({ result: "lost" });
    expect(await first.completion).toMatchObject({ type: "completedWithFinalizationFailure" });
    (await executor.next()).resolve({ result: 1 });
    (await executor.next()).resolve({ result: 2 });
    expect(await session.completion(first.inputId)).toEqual({ type: "completed", result: 1 });
    expect(await second.completion).toEqual({ type: "completed", result: 2 });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("is parked with its reason when that happens too often; the others go on (F-20)", async () => {
    const world = new World();
    const supervisor = await world.open();
    const healthy = await supervisor.sessions.open("healthy", { executor: echoExecutor() });
    const broken = await supervisor.sessions.open("broken", { executor: echoExecutor() });
    const fault = world.store.inject({
      on: "commit",
      fault: "conflict",
      when: (call) =>
        call.keys.some((key) => key[1] === "broken" && (key[2] === "turn" || key[2] === undefined)),
      times: 1_000,
    });
    await broken.accept({ kind: "prompt", text: "x" }).catch(() => undefined);
    for (let round = 0; round < 300; round += 1) await untilRest();
    expect(fault.struck.length).toBeGreaterThanOrEqual(4);
    const struck = fault.struck.length;
    const error = await broken.accept({ kind: "prompt", text: "y" }).catch((cause) => cause);
    expect(error).toMatchObject({
      code: "HOLDFAST_CLOSED",
      cause: { code: "HOLDFAST_STORE_CONFLICT" },
    });
    expect(fault.struck).toHaveLength(struck);
    expect(await (await acceptPrompt(healthy, "ok")).completion).toMatchObject({
      type: "completed",
    });

    fault.remove();
    await supervisor.sessions.open("broken", { executor: echoExecutor() });
    expect(await (await acceptPrompt(broken, "z")).completion).toMatchObject({ type: "completed" });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("whose records contradict each other is refused at opening, and nothing is written", async () => {
    const world = new World();
    const supervisor = await world.open();
    await supervisor.sessions.open("good", { executor: echoExecutor() });
    const transaction = await world.inner.begin();
    transaction.put(keys.session("bad"), { snapshot: null });
    await transaction.commit();
    const before = await world.rows("session", "bad");
    await expect(supervisor.sessions.open("bad")).rejects.toThrow(CorruptionError);
    expect(await world.rows("session", "bad")).toEqual(before);
    const good = await supervisor.sessions.get("good");
    expect(await (await acceptPrompt(good, "ok")).completion).toMatchObject({ type: "completed" });
    await supervisor.close();
  });
});

describe("a session without work", () => {
  it("leaves memory after its idle time, and comes back on the next call", async () => {
    const world = new World({ clock: "held", limits: { idleMs: 1_000 } });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
    await (await acceptPrompt(session, "one")).completion;
    expect(session.state()).toBe("attached");
    await world.clock.advance(3_000);
    expect(session.state()).toBe("destroyed");
    expect(world.clock.pending).toBe(0);
    const { completion } = await acceptPrompt(session, "two");
    expect(await completion).toEqual({ type: "completed", result: ["two"] });
    expect(session.state()).toBe("attached");
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("stays while it has inputs, however long they wait", async () => {
    const world = new World({ clock: "held", limits: { idleMs: 1_000 } });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s");
    await acceptPrompt(session, "waits");
    await world.clock.advance(10_000);
    expect(session.state()).toBe("idle");
    await supervisor.close();
  });
});

describe("opening", () => {
  it("many callers at once open one runtime", async () => {
    const world = new World();
    const supervisor = await world.open();
    const executor = echoExecutor();
    const sessions = await Promise.all(
      Array.from({ length: 20 }, () => supervisor.sessions.open("s", { executor })),
    );
    expect(world.store.counts.claim).toBe(1);
    const [session] = sessions;
    if (session === undefined) throw new Error("20 sessions");
    expect(await (await acceptPrompt(session, "x")).completion).toMatchObject({
      type: "completed",
    });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("without an id makes one, and another one each time", async () => {
    const supervisor = await new World().open();
    const [a, b] = [await supervisor.sessions.open(), await supervisor.sessions.open()];
    expect(a.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(b.id).not.toBe(a.id);
    await supervisor.close();
  });

  it("another executor takes the work over after the turn in progress", async () => {
    const world = new World();
    const supervisor = await world.open();
    const old = new ScriptedExecutor();
    const session = await supervisor.sessions.open("s", { executor: old });
    const first = await acceptPrompt(session, "one");
    const turn = await old.next();
    const second = await acceptPrompt(session, "two");
    await supervisor.sessions.open("s", { executor: echoExecutor() });
    turn.resolve({ result: "old" });
    expect(await first.completion).toEqual({ type: "completed", result: "old" });
    expect(await second.completion).toEqual({ type: "completed", result: ["two"] });
    expect(old.turns).toHaveLength(1);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("lists what holds unfinished work", async () => {
    const world = new World();
    const supervisor = await world.open();
    for (const id of ["a", "b", "c"]) await supervisor.sessions.open(id);
    const b = await supervisor.sessions.get("b");
    await acceptPrompt(b, "x");
    expect(await supervisor.sessions.active()).toEqual({ ids: ["b"], next: undefined });
    await supervisor.sessions.open("b", { executor: echoExecutor() });
    await untilRest();
    expect((await supervisor.sessions.active()).ids).toEqual([]);
    await supervisor.close();
  });

  it("options that are no options are refused", async () => {
    const supervisor = await new World().open();
    await expect(supervisor.sessions.open("s", { executor: {} as never })).rejects.toMatchObject({
      issues: [{ path: "/executor" }],
    });
    await expect(
      supervisor.sessions.open("s", { metadata: { at: new Date() } as never }),
    ).rejects.toMatchObject({ code: "HOLDFAST_VALIDATION" });
    await supervisor.close();
  });
});

describe("live actors", () => {
  it("show committed states only, in order; events from outside change nothing and are reported", async () => {
    const world = new World();
    const warnings: string[] = [];
    const logger: Logger = {
      debug() {},
      info() {},
      warn: (_, message) => warnings.push(message),
      error() {},
    };
    const supervisor = await Supervisor.open({ store: world.store, clock: world.clock, logger });
    const executor = functionExecutor(() => ({}));
    const session = await supervisor.sessions.open("s", { executor });
    const actor = await session.actor();
    const states: unknown[] = [];
    actor.subscribe({ next: (snapshot) => states.push(snapshot.value) });
    await (await acceptPrompt(session, "x")).completion;
    expect(states).toEqual(["attached", "running", "attached"]);
    const before = actor.getSnapshot();
    actor.send({ type: "destroy" });
    expect(actor.getSnapshot()).toBe(before);
    expect(session.state()).toBe("attached");
    expect(warnings).toEqual(["an event sent past the supervisor changed nothing"]);
    await supervisor.close();
  });

  it("are all given to an inspector that asks for them", async () => {
    const world = new World();
    const seen = new Set<string>();
    const supervisor = await Supervisor.open({
      store: world.store,
      clock: world.clock,
      inspect: (event) => {
        if (event.type === "@xstate.snapshot")
          seen.add((event.actorRef as unknown as { id: string }).id);
      },
    });
    const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
    const { inputId, completion } = await acceptPrompt(session, "x");
    await completion;
    await supervisor.close();
    expect([...seen].some((id) => id.startsWith("supervisor/"))).toBe(true);
    expect(seen).toContain("session/s");
    expect(seen).toContain(`session/s/input/${inputId}`);
    expect([...seen].some((id) => id.startsWith("session/s/turn/"))).toBe(true);
  });
});
