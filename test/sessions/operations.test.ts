import { describe, expect, it } from "vitest";
import {
  DestroyedError,
  type Executor,
  functionExecutor,
  NotReadyError,
  OperationError,
  type Session,
  type Supervisor,
} from "../../src/index.js";
import { keys } from "../../src/sessions/records.js";
import { untilRest } from "../test-clock.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, World } from "../world.js";

async function storedState(world: World): Promise<unknown> {
  const record = await world.inner.load(keys.session("s"));
  return (record?.value as { snapshot?: { value?: unknown } } | undefined)?.snapshot?.value;
}

async function outcomes(session: Session): Promise<readonly unknown[]> {
  return (await session.inputs()).items.map((input) =>
    input.outcome?.type === "abandoned" ? input.outcome.reason.code : input.phase,
  );
}

type State = "idle" | "attached" | "running" | "retired" | "stopped";

/** A session brought to a state, with two inputs waiting (and one in its turn while it runs). */
async function sessionIn(state: State) {
  const world = new World({ clock: "held" });
  const supervisor = await world.open();
  const executor = new ScriptedExecutor();
  const session = await supervisor.sessions.open("s");
  const completions = [];
  if (state === "attached") await supervisor.sessions.open("s", { executor });
  else {
    for (const text of ["one", "two"]) {
      completions.push((await acceptPrompt(session, text)).completion);
    }
  }
  if (state === "running") {
    await supervisor.sessions.open("s", { executor });
    await executor.next();
  }
  if (state === "retired" || state === "stopped") {
    await session[state === "retired" ? "retire" : "stop"]();
    completions.length = 0;
  }
  expect(session.state()).toBe(state);
  return { world, supervisor, executor, session, completions };
}

const operations = ["retire", "reset", "recycle", "stop", "destroy", "unregister"] as const;
type Operation = (typeof operations)[number];

/** The state after each operation, or the error it answers with; the table of the specification. */
const table: Readonly<Record<State, Readonly<Record<Operation, string>>>> = {
  idle: {
    retire: "retired",
    reset: "idle",
    recycle: "idle",
    stop: "stopped",
    destroy: "destroyed",
    unregister: "destroyed",
  },
  attached: {
    retire: "retired",
    reset: "attached",
    recycle: "attached",
    stop: "stopped",
    destroy: "destroyed",
    unregister: "destroyed",
  },
  running: {
    retire: "retired",
    reset: "NotReadyError",
    recycle: "NotReadyError",
    stop: "stopped",
    destroy: "destroyed",
    unregister: "destroyed",
  },
  retired: {
    retire: "retired",
    reset: "idle",
    recycle: "idle",
    stop: "stopped",
    destroy: "destroyed",
    unregister: "destroyed",
  },
  stopped: {
    retire: "NotReadyError",
    reset: "NotReadyError",
    recycle: "NotReadyError",
    stop: "stopped",
    destroy: "destroyed",
    unregister: "destroyed",
  },
};

for (const [state, row] of Object.entries(table) as [State, (typeof table)[State]][]) {
  describe(`a session that is ${state}`, () => {
    for (const operation of operations) {
      const end = row[operation];
      if (end === "NotReadyError") {
        it(`refuses to ${operation}, and nothing changes`, async () => {
          const { world, session } = await sessionIn(state);
          const before = await world.rows();
          const error = await session[operation]().catch((cause: unknown) => cause);
          expect(error).toBeInstanceOf(NotReadyError);
          expect(error).toMatchObject({ state, sessionId: "s" });
          expect(await world.rows()).toEqual(before);
          expect(session.state()).toBe(state);
        });
        continue;
      }
      it(`can ${operation}, and is ${end} then, in the store too`, async () => {
        const { world, session, executor, supervisor } = await sessionIn(state);
        const pending = session[operation]();
        if (operation === "unregister" && state === "running") {
          await untilRest();
          executor.turns[0]?.resolve({ result: 1 });
        }
        await pending;
        expect(session.state()).toBe(end);
        const stored =
          operation === "unregister"
            ? state === "stopped" || state === "retired"
              ? state
              : "idle"
            : end;
        expect(await storedState(world)).toBe(stored === "attached" ? "idle" : stored);
        await untilRest();
        const closing = supervisor.close({ mode: "cancel-and-drain" });
        await world.clock.advance(60_000);
        await closing;
        expect(await world.audit()).toEqual([]);
      });

      if (operation === "unregister" && state === "running") continue;
      it(`whose ${operation} does not commit is as before, and can ${operation} then`, async () => {
        const { world, session } = await sessionIn(state);
        const before = await world.rows();
        world.store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
        const failed = session[operation]().catch((cause: unknown) => cause);
        await world.clock.advance(5_000);
        const error = await failed;
        expect(error).toBeInstanceOf(OperationError);
        expect(error).toMatchObject({ operation, cause: { code: "HOLDFAST_STORE_UNAVAILABLE" } });
        expect(String(error)).toContain(operation);
        expect(await world.rows()).toEqual(before);
        expect(session.state()).toBe(state);
        await session[operation]();
        expect(session.state()).toBe(end);
      });
    }
  });
}

describe("retiring", () => {
  it("with no executor gives everything up", async () => {
    const { session, completions } = await sessionIn("idle");
    expect(await session.retire()).toEqual({ abandoned: 2, pendingDrain: 0 });
    expect(await Promise.all(completions)).toEqual([
      { type: "terminated", reason: "retired without a turn loop" },
      { type: "terminated", reason: "retired without a turn loop" },
    ]);
    expect(await outcomes(session)).toEqual(["retired", "retired"]);
    await expect(session.accept({ kind: "prompt", text: "x" })).rejects.toMatchObject({
      code: "HOLDFAST_NOT_READY",
      state: "retired",
    });
  });

  it("with an executor drains what waits, and the turn in progress commits (F-19)", async () => {
    const { world, session, executor, completions, supervisor } = await sessionIn("running");
    expect(await session.retire()).toEqual({ abandoned: 0, pendingDrain: 2 });
    expect(await session.retire()).toEqual({ abandoned: 0, pendingDrain: 2 });
    executor.turns[0]?.resolve({ result: 1 });
    await untilRest();
    executor.turns[1]?.resolve({ result: 2 });
    expect(await Promise.all(completions)).toEqual([
      { type: "completed", result: 1 },
      { type: "completed", result: 2 },
    ]);
    expect(session.state()).toBe("retired");
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("goes on draining after a restart, once an executor is there", async () => {
    const { world, session } = await sessionIn("running");
    await session.retire();
    world.restart();
    const later = await world.open();
    const reopened = await later.sessions.open("s", { executor: echoExecutor() });
    await untilRest();
    expect(reopened.state()).toBe("retired");
    expect(await outcomes(reopened)).toEqual(["consumed", "consumed"]);
    await later.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("resetting", () => {
  it("gives all inputs up, clears silent intents, and goes on", async () => {
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { silentIntents: ["ping"] });
    const { completion } = await acceptPrompt(session, "one", "k");
    expect(await session.reset()).toEqual({ abandoned: 1 });
    expect(await completion).toEqual({ type: "terminated", reason: "session reset" });
    expect((await session.actor()).getSnapshot().context.silentIntents).toEqual([]);
    const again = await session.accept({ kind: "prompt", text: "one", idempotencyKey: "k" });
    expect(again).toMatchObject({ outcome: "deduplicated", state: "abandoned" });
    await supervisor.sessions.open("s", { executor: echoExecutor() });
    expect(await (await acceptPrompt(session, "two")).completion).toMatchObject({
      type: "completed",
    });
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("recycling", () => {
  it("reads the lanes again from the rows; who waits goes on waiting", async () => {
    const { world, session, completions, supervisor } = await sessionIn("idle");
    expect(await session.recycle()).toEqual({ transferred: 2 });
    await supervisor.sessions.open("s", { executor: echoExecutor() });
    expect(await Promise.all(completions)).toEqual([
      { type: "completed", result: ["one"] },
      { type: "completed", result: ["two"] },
    ]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("keeps an ephemeral input, which lives in this process", async () => {
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s");
    const admission = await session.accept({ kind: "prompt", text: "e", durability: "ephemeral" });
    await acceptPrompt(session, "d");
    expect(await session.recycle()).toEqual({ transferred: 2 });
    await supervisor.sessions.open("s", { executor: echoExecutor() });
    if (admission.outcome !== "accepted") throw new Error("accepted");
    expect(await admission.completion).toEqual({ type: "completed", result: ["e"] });
    await supervisor.close();
  });

  it("refuses rows that contradict themselves, and changes nothing", async () => {
    const { world, session } = await sessionIn("idle");
    const transaction = await world.inner.begin();
    transaction.delete(keys.input("s", 0));
    await transaction.commit();
    await expect(session.recycle()).rejects.toMatchObject({ code: "HOLDFAST_CORRUPTION" });
    expect(session.state()).toBe("idle");
  });
});

describe("stopping", () => {
  it("cuts the turn off, gives all inputs up, and stops the executor (F-07)", async () => {
    const { world, session, executor, completions } = await sessionIn("running");
    const turn = executor.turns[0];
    expect(await session.stop()).toEqual({ abandoned: 2 });
    expect(turn?.request.signal.aborted).toBe(true);
    expect(executor.isStopped).toBe(true);
    const stopped = { type: "terminated", reason: "session stopped" };
    expect(await Promise.all(completions)).toEqual([stopped, stopped]);
    turn?.resolve({ result: "too late" });
    await untilRest();
    expect(await outcomes(session)).toEqual(["stopped", "stopped"]);
    expect(await world.rows("session", "s", "receipt")).toEqual([]);
    await expect(session.accept({ kind: "prompt", text: "x" })).rejects.toMatchObject({
      state: "stopped",
    });
  });

  it("can be undone by opening: the session keeps its identity and its history", async () => {
    const { session, supervisor, world } = await sessionIn("stopped");
    const reopened = await supervisor.sessions.open("s", { executor: echoExecutor() });
    expect(reopened.state()).toBe("attached");
    const admission = await acceptPrompt(session, "three");
    expect(await admission.completion).toEqual({ type: "completed", result: ["three"] });
    expect(await outcomes(session)).toEqual(["stopped", "stopped", "consumed"]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("outlasts passivation: only opening takes a stopped session back", async () => {
    const world = new World({ clock: "held", limits: { idleMs: 1_000 } });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
    await session.stop();
    await world.clock.advance(5_000);
    await expect(session.accept({ kind: "prompt", text: "x" })).rejects.toMatchObject({
      state: "stopped",
    });
    await supervisor.sessions.open("s");
    expect(session.state()).toBe("idle");
    await supervisor.close();
  });
});

describe("destroying", () => {
  it("is the end: published only once it is durable (F-05)", async () => {
    const { world, session, supervisor, completions } = await sessionIn("idle");
    const gate = world.store.hold({ on: "commit" });
    const pending = session.destroy();
    await gate.reached;
    expect(session.state()).toBe("idle");
    gate.release();
    expect(await pending).toEqual({ abandoned: 2 });
    expect(session.state()).toBe("destroyed");
    const destroyed = { type: "terminated", reason: "session destroyed" };
    expect(await Promise.all(completions)).toEqual([destroyed, destroyed]);
    const error = await session.accept({ kind: "prompt", text: "x" }).catch((cause) => cause);
    expect(error).toBeInstanceOf(DestroyedError);
    expect((await supervisor.sessions.get("s")).state()).toBe("destroyed");
  });

  it("twice answers that it is destroyed", async () => {
    const { session } = await sessionIn("idle");
    await session.destroy();
    await expect(session.destroy()).rejects.toBeInstanceOf(DestroyedError);
  });
});

describe("unregistering", () => {
  it("lets the turn in progress commit, starts no other, and keeps what waits in the store (F-15)", async () => {
    const { world, session, executor, completions, supervisor } = await sessionIn("running");
    const leaving = session.unregister();
    await untilRest();
    await expect(session.accept({ kind: "prompt", text: "x" })).rejects.toBeInstanceOf(
      NotReadyError,
    );
    executor.turns[0]?.resolve({ result: 1 });
    await leaving;
    expect(await Promise.all(completions)).toEqual([
      { type: "completed", result: 1 },
      { type: "terminated", reason: "session unregistered" },
    ]);
    expect(executor.turns).toHaveLength(1);
    expect(executor.isStopped).toBe(true);
    expect(await outcomes(session)).toEqual(["consumed", "queued"]);
    expect(await world.audit()).toEqual([]);
    const reopened = await supervisor.sessions.open("s", { executor: echoExecutor() });
    await untilRest();
    expect(await outcomes(reopened)).toEqual(["consumed", "consumed"]);
  });

  it("is bounded: an executor that does not come back is cut off, its input waits (F-08)", async () => {
    const { world, session, executor } = await sessionIn("running");
    const leaving = session.unregister();
    await world.clock.advance(30_000);
    await leaving;
    expect(executor.turns[0]?.request.signal.aborted).toBe(true);
    expect(session.state()).toBe("destroyed");
    expect(await outcomes(session)).toEqual(["queued", "queued"]);
    expect(await world.audit()).toEqual([]);
  });

  it("answers every later call as for a session that is not there, and asking again is nothing", async () => {
    const { session } = await sessionIn("idle");
    await Promise.all([session.unregister(), session.unregister()]);
    await session.unregister();
    const calls: (() => Promise<unknown>)[] = [
      () => session.accept({ kind: "prompt", text: "x" }),
      () => session.cancelTurn(),
      () => session.retire(),
      () => session.reset(),
      () => session.recycle(),
      () => session.stop(),
      () => session.destroy(),
    ];
    for (const call of calls) {
      const error = await call().catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(NotReadyError);
      expect(error).toMatchObject({ state: "destroyed" });
    }
  });

  it("whose second step does not commit goes on as before", async () => {
    const { world, session, completions, supervisor } = await sessionIn("idle");
    world.store.inject({
      on: "commit",
      fault: "unavailableBefore",
      when: (call) => call.index > world.store.counts.commit - 1 && world.store.counts.commit > 4,
      times: 6,
    });
    const failed = session.unregister().catch((cause: unknown) => cause);
    await world.clock.advance(5_000);
    expect(await failed).toBeInstanceOf(OperationError);
    expect(session.state()).toBe("idle");
    await supervisor.sessions.open("s", { executor: echoExecutor() });
    expect(await Promise.all(completions)).toMatchObject([
      { type: "completed" },
      { type: "completed" },
    ]);
    await session.unregister();
    expect(session.state()).toBe("destroyed");
  });

  it("a crash in the middle of it does not replay it (F-14)", async () => {
    const { world, session } = await sessionIn("idle");
    world.store.inject({ on: "commit", fault: "crashAfter" });
    void session.unregister();
    await world.store.crashed;
    world.restart();
    const later = await world.open();
    const reopened = await later.sessions.open("s", { executor: echoExecutor() });
    await untilRest();
    expect(await outcomes(reopened)).toEqual(["consumed", "consumed"]);
    await later.close();
    expect(await world.audit()).toEqual([]);
  });

  it("opening meanwhile waits for it and registers anew", async () => {
    const { session, supervisor } = await sessionIn("idle");
    const leaving = session.unregister();
    const reopened = await supervisor.sessions.open("s", { executor: echoExecutor() });
    await leaving;
    expect(["attached", "running"]).toContain(reopened.state());
  });
});

describe("operations against turns", () => {
  const cut: readonly (readonly [
    string,
    (session: Session, supervisor: Supervisor) => Promise<unknown>,
  ])[] = [
    ["stop", (session) => session.stop()],
    ["destroy", (session) => session.destroy()],
    ["cancel", (session) => session.cancelTurn()],
    ["unregister", (session) => session.unregister()],
    ["close", (_, supervisor) => supervisor.close({ mode: "cancel-and-drain" })],
  ];
  for (const [name, act] of cut) {
    it(`${name} at every moment of a turn leaves a sound store`, async () => {
      for (let moment = 0; moment < 12; moment += 1) {
        const world = new World();
        const supervisor = await world.open();
        const executor: Executor = functionExecutor(async ({ signal }) => {
          await Promise.resolve();
          if (signal.aborted) throw new Error("aborted");
          return { result: "done" };
        });
        const session = await supervisor.sessions.open("s", { executor });
        const { completion } = await acceptPrompt(session, "x");
        for (let step = 0; step < moment; step += 1) await Promise.resolve();
        await act(session, supervisor).catch((error: unknown) => {
          expect(error).toBeInstanceOf(NotReadyError);
        });
        await completion;
        await supervisor.close();
        expect(await world.audit(), `moment ${moment}`).toEqual([]);
      }
    });
  }
});
