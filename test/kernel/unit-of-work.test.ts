import { beforeEach, describe, expect, it } from "vitest";
import { turnMachine } from "../../machines/turn.js";
import { StoreConflict, StoreFenced, StoreUnavailable, TransitionError } from "../../src/errors.js";
import { DurableActor } from "../../src/kernel/actor.js";
import { journalKey, journalPlan } from "../../src/kernel/journal.js";
import { Plan } from "../../src/kernel/plan.js";
import { commitPlan, OutcomeUnknown } from "../../src/kernel/unit-of-work.js";
import { initialSnapshot } from "../../src/kernel/xstate.js";
import { type FailingStore, failingStore, type Lease, memoryStore } from "../../src/store/index.js";
import { TestClock, untilRest } from "../test-clock.js";

const owner = ["session", "s"] as const;
const AT = "2026-01-01T00:00:00.000Z";

let store: FailingStore;
let lease: Lease;
let clock: TestClock;
let actor: DurableActor<typeof turnMachine>;

beforeEach(async () => {
  store = failingStore(memoryStore());
  lease = await store.claim(owner);
  clock = new TestClock({ mode: "jumping" });
  actor = new DurableActor({
    id: "turn",
    machine: turnMachine,
    snapshot: initialSnapshot(turnMachine, {
      turnId: "t",
      sessionId: "s",
      inputIds: ["i"],
      boundary: "turnStart",
      stagedAt: AT,
    }),
    watch: { onForeignEvent() {} },
  });
});

let operations = 0;

function begin() {
  operations += 1;
  const plan = new Plan({ operation: `operation-${operations}`, atMs: clock.nowMs() });
  plan.move(actor, { type: "begin", at: AT });
  plan.put([...owner, "row"], { at: AT });
  const proof = journalPlan(plan, { owner, sequence: operations, kept: 1_000 });
  return { plan, proof };
}

async function commit({ plan, proof }: ReturnType<typeof begin>) {
  await commitPlan(plan, { store, lease, clock, proof });
}

describe("a plan", () => {
  it("changes nothing until it is published: it can be dropped", () => {
    const { plan } = begin();
    expect(plan.state(actor as never)).toBe("executing");
    expect(actor.state).toBe("staged");
    expect(plan.moves).toMatchObject([{ actor: "turn", from: "staged", to: "executing" }]);
    plan.publish(() => {});
    expect(actor.state).toBe("executing");
  });

  it("steps on from its own moves, and refuses what the chart refuses there", () => {
    const { plan } = begin();
    plan.move(actor, { type: "fail", at: AT, reason: "r" });
    expect(plan.isFinal(actor as never)).toBe(true);
    let error: unknown;
    try {
      plan.move(actor, { type: "complete", at: AT });
    } catch (cause) {
      error = cause;
    }
    expect(error).toBeInstanceOf(TransitionError);
    expect(error).toMatchObject({ state: "failed", event: "complete", reason: "terminalState" });
    expect(actor.state).toBe("staged");
  });

  it("publishes in one order: actors first, then its own tasks, then the charts' effects", () => {
    const { plan } = begin();
    plan.move(actor, { type: "cancel", at: AT });
    const order: string[] = [];
    plan.onPublish(() => order.push(`task in ${actor.state}`));
    plan.publish((effect) => order.push(effect.type));
    expect(order).toEqual(["task in cancelled", "abortExecutor"]);
  });
});

describe("committing a plan", () => {
  it("writes all of its rows under its operation, or none", async () => {
    const work = begin();
    await commit(work);
    const row = await store.load([...owner, "row"]);
    const proof = await store.load(work.proof);
    expect(row?.operation).toBe(work.plan.operation);
    expect(proof?.operation).toBe(work.plan.operation);
    expect(proof?.value).toMatchObject({ moves: [{ event: { type: "begin" } }] });
  });

  it("tries again while the store is unavailable, six times in all, with growing pauses", async () => {
    const times: number[] = [];
    store.inject({
      on: "commit",
      fault: "unavailableBefore",
      times: 5,
      when: () => times.push(clock.nowMs()) > 0,
    });
    await commit(begin());
    expect(store.counts.commit).toBe(6);
    expect(await store.load([...owner, "row"])).toBeDefined();
    const pauses = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(pauses.every((pause) => pause > 0)).toBe(true);
    expect(Math.max(...pauses)).toBeLessThan(1_000);
  });

  it("gives the store's error up unchanged when the tries are used up, and nothing is written", async () => {
    store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
    const work = begin();
    await expect(commit(work)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(store.counts.commit).toBe(6);
    expect(await store.load(work.proof)).toBeUndefined();
    expect(await store.load([...owner, "row"])).toBeUndefined();
  });

  it("finds out that a commit without an answer has happened, and does not do it again", async () => {
    store.inject({ on: "commit", fault: "unavailableAfter" });
    await commit(begin());
    expect(store.counts.commit).toBe(1);
  });

  it("finds out that it has not happened, and does it", async () => {
    store.inject({ on: "commit", fault: "unavailableBefore" });
    const work = begin();
    await commit(work);
    expect(store.counts.commit).toBe(2);
    expect((await store.load(work.proof))?.operation).toBe(work.plan.operation);
  });

  it("answers that nobody can tell when the evidence cannot be read", async () => {
    store.inject({ on: "commit", fault: "unavailableAfter" });
    store.inject({ on: "load", fault: "unavailableBefore", times: 6 });
    await expect(commit(begin())).rejects.toBeInstanceOf(OutcomeUnknown);
    store.requireStruck();
    expect(store.counts.commit).toBe(1);
  });

  it("reads the evidence again when reading fails, within the same bound", async () => {
    store.inject({ on: "commit", fault: "unavailableAfter" });
    store.inject({ on: "load", fault: "unavailableBefore", times: 5 });
    await commit(begin());
    expect(store.counts.load).toBe(6);
  });

  it("takes a proof of somebody else's plan as a sign that this one was not done", async () => {
    const other = begin();
    await commit(other);
    store.inject({ on: "commit", fault: "unavailableBefore" });
    const plan = new Plan({ operation: "another", atMs: clock.nowMs() });
    plan.put(other.proof, { moves: [] });
    await expect(
      commitPlan(plan, { store, lease, clock, proof: other.proof }),
    ).rejects.toBeInstanceOf(StoreConflict);
    expect((await store.load(other.proof))?.operation).toBe(other.plan.operation);
  });

  it("does not retry a conflict or a fence", async () => {
    store.inject({ on: "commit", fault: "conflict" });
    await expect(commit(begin())).rejects.toBeInstanceOf(StoreConflict);
    await store.claim(owner);
    await expect(commit(begin())).rejects.toBeInstanceOf(StoreFenced);
    expect(store.counts.commit).toBe(2);
  });

  for (const refusal of ["a fence", "a conflict"] as const) {
    it(`${refusal} is no refusal when an earlier try lands late: the evidence decides`, async () => {
      clock = new TestClock({ mode: "held" });
      store.inject({ on: "commit", fault: "unavailableBefore" });
      const work = begin();
      const pending = commit(work);
      await untilRest();
      // The first try, which was taken for lost, is applied now; then another owner comes.
      const late = await store.inner.begin({ lease, operation: work.plan.operation });
      for (const row of work.plan.rows) if (row.type === "put") late.put(row.key, row.value);
      await late.commit();
      if (refusal === "a fence") await store.inner.claim(owner);
      await clock.advance(1_000);
      await pending;
      expect(store.counts.commit).toBe(2);
      expect((await store.load(work.proof))?.operation).toBe(work.plan.operation);
    });
  }

  it("lets go of the transaction when the plan holds a value that cannot be stored", async () => {
    const work = begin();
    work.plan.put([...owner, "bad"], { value: Number.NaN });
    await expect(commit(work)).rejects.toMatchObject({ code: expect.stringMatching(/^HOLDFAST_/) });
    expect(store.counts.commit).toBe(0);
    expect(store.counts.rollback).toBe(1);
    expect(await store.load(work.proof)).toBeUndefined();
  });
});

describe("the journal", () => {
  it("keeps the limit and trims what is older a page at a time", async () => {
    const kept = 100;
    const counts: number[] = [];
    for (let sequence = 0; sequence < 400; sequence += 1) {
      const plan = new Plan({ operation: `o-${sequence}`, atMs: clock.nowMs() });
      const proof = journalPlan(plan, { owner, sequence, kept });
      await commitPlan(plan, { store, lease, clock, proof });
      const page = await store.inner.list({ prefix: ["journal", ...owner], limit: 256 });
      counts.push(page.records.length);
      expect(page.records.at(-1)?.key).toEqual(journalKey(owner, sequence));
    }
    expect(Math.max(...counts)).toBeLessThan(kept + 64 + 1);
    expect(Math.min(...counts.slice(kept))).toBeGreaterThanOrEqual(kept);
  });
});
