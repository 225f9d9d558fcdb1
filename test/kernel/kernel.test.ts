import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { assign, setup } from "xstate";
import { DurableActor } from "../../src/kernel/actor.js";
import { settlesInTime, systemClock } from "../../src/kernel/clock.js";
import { randomIds, uuid7 } from "../../src/kernel/ids.js";
import { Mutex } from "../../src/kernel/mutex.js";
import { retryBounded } from "../../src/kernel/retry.js";
import {
  encodeSnapshot,
  hasState,
  initialSnapshot,
  restoreSnapshot,
  step,
} from "../../src/kernel/xstate.js";
import { TestClock } from "../test-clock.js";

const doorMachine = setup({
  types: {
    context: {} as { readonly opened: number; readonly max: number },
    events: {} as
      | { readonly type: "open" }
      | { readonly type: "close" }
      | { readonly type: "knock" }
      | { readonly type: "burn" },
    input: {} as { readonly max: number },
  },
  guards: { mayOpen: ({ context }) => context.opened < context.max },
  actions: {
    count: assign(({ context }) => ({ opened: context.opened + 1 })),
    ring: () => {
      throw new Error("an effect of a chart runs after the commit, never in a step");
    },
  },
}).createMachine({
  id: "door",
  initial: "closed",
  context: ({ input }) => ({ opened: 0, max: input.max }),
  states: {
    closed: {
      on: {
        open: { guard: "mayOpen", target: "open", actions: ["count", "ring"] },
        knock: { description: "Heard, and nothing changes." },
      },
    },
    open: { on: { close: "closed", burn: "gone" } },
    gone: { type: "final" },
  },
});

describe("the step of a chart", () => {
  const start = initialSnapshot(doorMachine, { max: 1 });

  it("gives the next snapshot and the effects it asks for, and runs none of them", () => {
    const taken = step(doorMachine, start, { type: "open" });
    if (!taken.accepted) throw new Error("accepted");
    expect(taken.snapshot.value).toBe("open");
    expect(taken.snapshot.context).toEqual({ opened: 1, max: 1 });
    expect(taken.effects.map((effect) => effect.type)).toEqual(["ring"]);
    expect(start.value).toBe("closed");
    expect(start.context).toEqual({ opened: 0, max: 1 });
  });

  it("tells an illegal transition, a failed guard and a final state apart", () => {
    const doorAfter = (...events: readonly ("open" | "close" | "burn")[]) =>
      events.reduce((snapshot, type) => {
        const taken = step(doorMachine, snapshot, { type });
        if (!taken.accepted) throw new Error(type);
        return taken.snapshot;
      }, start);
    expect(step(doorMachine, start, { type: "close" })).toEqual({
      accepted: false,
      reason: "illegalTransition",
    });
    expect(step(doorMachine, doorAfter("open", "close"), { type: "open" })).toEqual({
      accepted: false,
      reason: "guardFailed",
    });
    expect(step(doorMachine, doorAfter("open", "burn"), { type: "open" })).toEqual({
      accepted: false,
      reason: "terminalState",
    });
  });

  it("takes an event that is ignored on purpose as accepted", () => {
    const taken = step(doorMachine, start, { type: "knock" });
    expect(taken).toMatchObject({ accepted: true, effects: [] });
  });

  it("is the same after a snapshot went through JSON", () => {
    const taken = step(doorMachine, start, { type: "open" });
    if (!taken.accepted) throw new Error("accepted");
    const stored = encodeSnapshot(taken.snapshot);
    const restored = restoreSnapshot(doorMachine, JSON.parse(JSON.stringify(stored)));
    expect(encodeSnapshot(restored)).toEqual(stored);
    expect(step(doorMachine, restored, { type: "close" })).toMatchObject({
      accepted: true,
      snapshot: { value: "closed", context: { opened: 1 } },
    });
  });

  it("knows its own states by their own names alone", () => {
    expect(hasState(doorMachine, "open")).toBe(true);
    for (const name of ["ajar", "constructor", "__proto__", "", 1, null, { open: {} }]) {
      expect(hasState(doorMachine, name)).toBe(false);
    }
  });
});

describe("a durable actor", () => {
  function door(foreign: string[] = []) {
    return new DurableActor({
      id: "door-1",
      machine: doorMachine,
      snapshot: initialSnapshot(doorMachine, { max: 3 }),
      watch: { onForeignEvent: (id, event) => foreign.push(`${id} ${event}`) },
    });
  }

  it("moves by adoption alone; its live XState actor shows what was adopted", () => {
    const foreign: string[] = [];
    const actor = door(foreign);
    const seen: unknown[] = [];
    actor.ref.subscribe({ next: (snapshot) => seen.push(snapshot.value) });
    actor.ref.send({ type: "open" });
    expect(actor.state).toBe("closed");
    expect(actor.ref.getSnapshot().value).toBe("closed");
    expect(foreign).toEqual(["door-1 open"]);
    const taken = step(doorMachine, actor.snapshot, { type: "open" });
    if (!taken.accepted) throw new Error("accepted");
    actor.adopt({ type: "open" }, taken.snapshot);
    expect(actor.state).toBe("open");
    expect(actor.ref.getSnapshot()).toBe(taken.snapshot);
    expect(seen.at(-1)).toBe("open");
  });

  it("tells subscribers that it is done when it reaches a final state", () => {
    const actor = door();
    let isDone = false;
    actor.ref.subscribe({
      complete: () => {
        isDone = true;
      },
    });
    for (const type of ["open", "burn"] as const) {
      const taken = step(doorMachine, actor.snapshot, { type });
      if (!taken.accepted) throw new Error(type);
      actor.adopt({ type }, taken.snapshot);
    }
    expect(actor.state).toBe("gone");
    expect(isDone).toBe(true);
  });
});

describe("the lock of an owner", () => {
  it("runs one task at a time, in the order of asking, whatever fails", async () => {
    const mutex = new Mutex();
    const log: string[] = [];
    let inside = 0;
    const task = (name: string, fails = false) =>
      mutex.run(async () => {
        inside += 1;
        expect(inside).toBe(1);
        await null;
        await null;
        log.push(name);
        inside -= 1;
        if (fails) throw new Error(name);
        return name;
      });
    const results = await Promise.allSettled([task("a"), task("b", true), task("c")]);
    expect(log).toEqual(["a", "b", "c"]);
    expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(mutex.isFree).toBe(true);
  });
});

describe("bounded retries", () => {
  it("stop at the bound with the last error, and wait on the injected clock", async () => {
    const clock = new TestClock({ mode: "jumping" });
    const before = clock.nowMs();
    let tries = 0;
    const failing = retryBounded(
      async () => {
        tries += 1;
        throw new Error(`try ${tries}`);
      },
      { clock, mayRetry: () => true },
    );
    await expect(failing).rejects.toThrow("try 6");
    expect(tries).toBe(6);
    expect(clock.nowMs() - before).toBeGreaterThan(50);
    expect(clock.nowMs() - before).toBeLessThan(2_000);
  });

  it("end with the first error that may not be retried", async () => {
    let tries = 0;
    const failing = retryBounded(
      async () => {
        tries += 1;
        throw new Error(tries === 2 ? "fatal" : "passing");
      },
      {
        clock: new TestClock({ mode: "jumping" }),
        mayRetry: (error) => error instanceof Error && error.message === "passing",
      },
    );
    await expect(failing).rejects.toThrow("fatal");
    expect(tries).toBe(2);
  });

  it("one try is one try", async () => {
    let tries = 0;
    const failing = retryBounded(
      async () => {
        tries += 1;
        throw new Error("no");
      },
      { clock: new TestClock({ mode: "jumping" }), mayRetry: () => true, triesMax: 1 },
    );
    await expect(failing).rejects.toThrow("no");
    expect(tries).toBe(1);
  });
});

describe("ids", () => {
  const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  it("are UUIDs of version 7, unique and in order, within a millisecond and when the clock steps back", () => {
    const ids = randomIds();
    const times = [5, 5, 5, 4, 5, 6, 1_700_000_000_000, 1_699_999_999_999];
    const made = times.map((at) => ids.next(at));
    for (const id of made) expect(id).toMatch(pattern);
    expect([...made].sort()).toEqual(made);
    expect(new Set(made).size).toBe(made.length);
    expect(Number.parseInt((made[6] ?? "").replaceAll("-", "").slice(0, 12), 16)).toBe(
      1_700_000_000_000,
    );
  });

  it("stay in order past the 4,096 of one millisecond", () => {
    const ids = uuid7((bytes) => new Uint8Array(bytes));
    let last = "";
    for (let index = 0; index < 10_000; index += 1) {
      const id = ids.next(1_000);
      expect(id > last).toBe(true);
      last = id;
    }
  });
});

describe("time", () => {
  it("a task that is taken back does not run, one that is due runs soon", async () => {
    const ran: string[] = [];
    const cancel = systemClock.schedule(Date.now() + 5, () => ran.push("cancelled"));
    cancel();
    systemClock.schedule(Date.now() - 1_000, () => ran.push("overdue"));
    await sleep(20);
    expect(ran).toEqual(["overdue"]);
  });

  it("waits longer than a timer of the platform can", async () => {
    const cancel = systemClock.schedule(Date.now() + 2 ** 40, () => {
      throw new Error("this is 34 years away");
    });
    await sleep(5);
    cancel();
  });

  it("work that settles in time leaves no timer behind", async () => {
    const clock = new TestClock({ mode: "held" });
    expect(await settlesInTime(clock, clock.nowMs() + 10, Promise.reject(new Error("x")))).toBe(
      true,
    );
    expect(clock.pending).toBe(0);
    const late = settlesInTime(clock, clock.nowMs() + 10, new Promise(() => {}));
    await clock.advance(10);
    expect(await late).toBe(false);
  });
});
