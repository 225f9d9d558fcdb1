import { describe, expect, it } from "vitest";
import {
  CorruptionError,
  type Session,
  StoreUnavailable,
  type Supervisor,
} from "../../src/index.js";
import { keys } from "../../src/sessions/records.js";
import { echoExecutor, ScriptedExecutor, World } from "../world.js";
import {
  AT,
  aliasKey,
  apply,
  awaitConsumption,
  consume,
  inputRow,
  queue,
  type StoredInput,
  stage,
  write,
  writeInput,
  writeReceipt,
} from "./stored-rows.js";

const pending: StoredInput["events"] = [queue, stage("t-1"), apply("t-1"), awaitConsumption];
const consumed: StoredInput["events"] = [...pending, consume];

/** Recovers session `s` and gives it an executor whose turns the test answers. */
async function recover(world: World) {
  const supervisor = await world.open();
  const report = await supervisor.sessions.recover("s");
  const session = await supervisor.sessions.get("s");
  return { supervisor, session, report };
}

async function dequeue(supervisor: Supervisor) {
  const executor = new ScriptedExecutor();
  await supervisor.sessions.open("s", { executor });
  const turn = await executor.next();
  return turn.request.inputs;
}

async function isNothingTaken(supervisor: Supervisor, session: Session) {
  const executor = new ScriptedExecutor();
  await supervisor.sessions.open("s", { executor });
  await (await session.accept({ kind: "operation", operationId: "o", event: null })).outcome;
  return executor.turns.length === 0 && session.state() === "attached";
}

/** A session whose record is stored, as after work, in the state `value`. */
async function storedSession(world: World, value: string, rows: readonly StoredInput[] = []) {
  const supervisor = await world.open();
  await supervisor.sessions.open("s");
  await supervisor.close();
  const record = await world.inner.load(keys.session("s"));
  const stored = record?.value as { snapshot: object; ledger: object };
  await write(world, [
    [
      keys.session("s"),
      {
        ...stored,
        snapshot: { ...stored.snapshot, value },
        ledger: { ...stored.ledger, nextInput: rows.length, nextPosition: rows.length },
      } as never,
    ],
    ...rows.map(
      (row, sequence) => [keys.input("s", sequence), inputRow({ ...row, sequence })] as const,
    ),
  ]);
}

async function storedState(world: World): Promise<unknown> {
  const record = await world.inner.load(keys.session("s"));
  return (record?.value as { snapshot?: { value?: unknown } } | undefined)?.snapshot?.value;
}

describe("recovery", () => {
  it("S-000-03: a stamped accepted row is recovered, known, and taken with its payload", async () => {
    const world = new World();
    await writeInput(world, "s");
    const { supervisor, session, report } = await recover(world);
    expect(report).toMatchObject({ recovered: 1, requeued: 0, abandoned: 0 });
    expect(await session.input("input-1")).toMatchObject({ phase: "queued" });
    expect(await dequeue(supervisor)).toMatchObject([
      { payload: { kind: "prompt", text: "hello" } },
    ]);
  });

  it("S-000-04: a row under the bare alias is unknown", async () => {
    const world = new World();
    await writeInput(world, "s");
    await write(world, [[aliasKey("s", "input", "0"), inputRow({ id: "alias-1" })]]);
    const { session, report } = await recover(world);
    expect(report.recovered).toBe(1);
    expect(await session.input("alias-1")).toBeUndefined();
  });

  it("S-000-05: the key of a recovered row is taken", async () => {
    const world = new World();
    await writeInput(world, "s", { idempotencyKey: "req-1" });
    const { session } = await recover(world);
    expect(
      await session.accept({ kind: "prompt", text: "hello", idempotencyKey: "req-1" }),
    ).toMatchObject({ outcome: "deduplicated", existingId: "input-1" });
  });

  it("S-000-06: an ephemeral row without payload is skipped before any other check", async () => {
    const world = new World();
    await writeInput(world, "s", { durability: "ephemeral", without: ["payload", "stamp"] });
    const { session, report } = await recover(world);
    expect(report.recovered).toBe(0);
    expect(await session.input("input-1")).toBeUndefined();
    expect((await session.inputs()).items).toEqual([]);
    expect(await world.audit()).toEqual([]);
  });

  it("S-000-09: a commit that fails leaves everything as it was, and a later try succeeds", async () => {
    const world = new World();
    await writeInput(world, "s");
    const before = await world.rows("session");
    const supervisor = await world.open();
    const fault = world.store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
    await expect(supervisor.sessions.recover("s")).rejects.toThrow(StoreUnavailable);
    expect(fault.struck).toHaveLength(6);
    expect(await world.rows("session")).toEqual(before);
    await expect(supervisor.sessions.get("s")).rejects.toMatchObject({
      code: "HOLDFAST_NOT_FOUND",
    });

    expect((await supervisor.sessions.recover("s")).recovered).toBe(1);
    expect(await dequeue(supervisor)).toHaveLength(1);
  });

  it("S-000-10: a row without stamp fails recovery, and the healthy one before it is unknown too", async () => {
    const world = new World();
    await writeInput(world, "s");
    await writeInput(world, "s", { id: "input-2", sequence: 1, without: ["stamp", "policy"] });
    const before = await world.rows("session");
    const supervisor = await world.open();
    const error = await supervisor.sessions.recover("s").catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(CorruptionError);
    expect(String(error)).toContain("missing runtime execution semantics stamp");
    expect(await world.rows("session")).toEqual(before);
    await expect(supervisor.sessions.get("s")).rejects.toMatchObject({
      code: "HOLDFAST_NOT_FOUND",
    });
  });

  it("S-000-11: a consumed row without stamp is known, not active, and stays unstamped", async () => {
    const world = new World();
    await writeReceipt(world, "s", { turnId: "t-1", inputIds: ["input-1"] });
    await writeInput(world, "s", { events: consumed, without: ["stamp"] });
    const { supervisor, session, report } = await recover(world);
    expect(report.recovered).toBe(0);
    expect((await session.input("input-1"))?.phase).toBe("consumed");
    expect(await isNothingTaken(supervisor, session)).toBe(true);
    const row = await world.inner.load(keys.input("s", 0));
    expect(row?.value).not.toHaveProperty("stamp");
  });

  it("S-000-12: an applied input with its receipt is consumed and not run again (F-17)", async () => {
    const world = new World();
    await writeReceipt(world, "s", { turnId: "t-1", inputIds: ["input-1"] });
    await writeInput(world, "s", { events: pending });
    const { supervisor, session } = await recover(world);
    expect((await session.input("input-1"))?.phase).toBe("consumed");
    expect(await isNothingTaken(supervisor, session)).toBe(true);
  });

  it("S-000-13: a newer duplicate under the alias changes nothing", async () => {
    const world = new World();
    await writeReceipt(world, "s", { turnId: "t-1", inputIds: ["input-1"] });
    await writeInput(world, "s", { events: pending });
    const newer = inputRow({
      events: pending,
      overwrite: { updatedAt: "2026-01-01T00:00:00.001Z" },
    });
    await write(world, [[aliasKey("s", "input", "0"), newer]]);
    const { supervisor, session } = await recover(world);
    expect((await session.input("input-1"))?.phase).toBe("consumed");
    expect(await isNothingTaken(supervisor, session)).toBe(true);
  });

  it("S-000-14: an accepted duplicate under the alias changes nothing", async () => {
    const world = new World();
    await writeReceipt(world, "s", { turnId: "t-1", inputIds: ["input-1"] });
    await writeInput(world, "s", { events: pending });
    await write(world, [[aliasKey("s", "input", "0"), inputRow()]]);
    const { supervisor, session } = await recover(world);
    expect((await session.input("input-1"))?.phase).toBe("consumed");
    expect(await isNothingTaken(supervisor, session)).toBe(true);
  });

  const aliasReads = {
    on: ["load", "list", "txLoad"] as const,
    fault: "unavailableBefore" as const,
  };

  it("S-000-15: without a receipt it is queued again, whatever the alias's receipts would say", async () => {
    const world = new World();
    await writeInput(world, "s", { events: pending });
    const fault = world.store.inject({
      ...aliasReads,
      when: (call) => call.keys.some((key) => key[0] === "s"),
      times: Number.POSITIVE_INFINITY,
    });
    const { supervisor, session, report } = await recover(world);
    expect(report).toMatchObject({ recovered: 1, requeued: 1 });
    expect((await session.input("input-1"))?.phase).toBe("queued");
    expect(await dequeue(supervisor)).toMatchObject([{ inputId: "input-1", attempt: 2 }]);
    expect(fault.struck).toEqual([]);
  });

  it("S-000-16: a receipt under the alias alone proves nothing", async () => {
    const world = new World();
    await writeInput(world, "s", { events: pending });
    await write(world, [
      [aliasKey("s", "receipt", "t-1", "0"), { turnId: "t-1", sequence: 0, inputIds: ["input-1"] }],
    ]);
    const { supervisor, report } = await recover(world);
    expect(report.recovered).toBe(1);
    expect(await dequeue(supervisor)).toHaveLength(1);
  });

  for (const [id, title, rows] of [
    ["S-000-17", "the canonical row is recovered", 1],
    ["S-000-18", "nothing is recovered where nothing is", 0],
    ["S-000-19", "the session is idle", 0],
  ] as const) {
    it(`${id}: whatever the alias's reads do, ${title}`, async () => {
      const world = new World();
      if (rows === 1) await writeInput(world, "s");
      const fault = world.store.inject({
        ...aliasReads,
        when: (call) => call.keys.some((key) => key[0] === "s"),
        times: Number.POSITIVE_INFINITY,
      });
      const { session, report } = await recover(world);
      expect(report.recovered).toBe(rows);
      expect(session.state()).toBe("idle");
      expect(fault.struck).toEqual([]);
    });
  }

  it("S-000-20: a destroyed session without inputs is recovered as idle, in the store too", async () => {
    const world = new World();
    await storedSession(world, "destroyed");
    const { session } = await recover(world);
    expect(session.state()).toBe("idle");
    expect(await storedState(world)).toBe("idle");
  });

  it("S-000-21: a destroyed session with an active input is a contradiction and stays as it is", async () => {
    const world = new World();
    await storedSession(world, "destroyed", [{}]);
    const supervisor = await world.open();
    const error = await supervisor.sessions.recover("s").catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(CorruptionError);
    expect(String(error)).toContain(
      "runtime-state projection 'destroyed' conflicts with 1 active inputs",
    );
    expect(await storedState(world)).toBe("destroyed");
    const session = await supervisor.sessions.get("s");
    await expect(session.accept({ kind: "prompt", text: "x" })).rejects.toMatchObject({
      code: "HOLDFAST_DESTROYED",
    });
  });

  it("a stopped session with two active inputs names state and number", async () => {
    const world = new World();
    await storedSession(world, "stopped", [{}, { id: "input-2", events: [queue] }]);
    const supervisor = await world.open();
    await expect(supervisor.sessions.recover("s")).rejects.toThrow(
      "runtime-state projection 'stopped' conflicts with 2 active inputs",
    );
  });

  it("a stopped session without inputs can be opened again, with its identity", async () => {
    const world = new World();
    await storedSession(world, "stopped");
    const { session, supervisor } = await recover(world);
    expect(session.state()).toBe("idle");
    await supervisor.close();
  });

  it("a staged input waits again under the attempts it had (F-11)", async () => {
    const world = new World();
    await writeInput(world, "s", { events: [queue, stage("t-old")] });
    const { supervisor, session, report } = await recover(world);
    expect(report).toMatchObject({
      recovered: 1,
      requeued: 1,
      details: [{ inputId: "input-1", from: "staged", to: "queued" }],
    });
    expect(await session.input("input-1")).toMatchObject({ attempts: 1, recoveries: 1 });
    expect(await dequeue(supervisor)).toMatchObject([{ attempt: 2 }]);
  });

  it("an applied input without a named boundary is judged by the first receipt of its turn", async () => {
    const world = new World();
    await writeReceipt(world, "s", { turnId: "t-1", inputIds: ["input-1"] });
    await writeInput(world, "s", { events: [queue, stage("t-1"), apply("t-1")] });
    const { session } = await recover(world);
    expect((await session.input("input-1"))?.phase).toBe("consumed");
  });

  it("a read error while looking for a receipt ends recovery, and nothing is written", async () => {
    const world = new World();
    await writeInput(world, "s", { events: pending });
    const before = await world.rows("session");
    const supervisor = await world.open();
    const fault = world.store.inject({
      on: "load",
      fault: "unavailableBefore",
      when: (call) => call.keys[0]?.[2] === "receipt",
      times: 6,
    });
    await expect(supervisor.sessions.recover("s")).rejects.toThrow(StoreUnavailable);
    expect(fault.struck).toHaveLength(6);
    expect(await world.rows("session")).toEqual(before);
    expect((await supervisor.sessions.recover("s")).recovered).toBe(1);
  });

  it("a stamp that is not the one of its policy is corruption", async () => {
    const world = new World();
    await writeInput(world, "s", {
      overwrite: { stamp: { boundary: "immediate", execution: "contentTurn" } },
    });
    const supervisor = await world.open();
    await expect(supervisor.sessions.recover("s")).rejects.toThrow(/stamp is not the one/);
  });

  for (const [field, found] of [
    ["payload", "missing payload"],
    ["policy", "missing policy"],
  ] as const) {
    it(`an active row without ${field} is refused`, async () => {
      const world = new World();
      await writeInput(world, "s", { without: [field] });
      const supervisor = await world.open();
      await expect(supervisor.sessions.recover("s")).rejects.toThrow(found);
    });
  }

  it("an input row that went missing is noticed by its sequence", async () => {
    const world = new World();
    const first = await world.open();
    const session = await first.sessions.open("s");
    for (const text of ["a", "b", "c"]) await session.accept({ kind: "prompt", text });
    await first.close();
    const transaction = await world.inner.begin();
    transaction.delete(keys.input("s", 1));
    await transaction.commit();
    const second = await world.open();
    await expect(second.sessions.open("s")).rejects.toThrow(
      /input 1 of the session is missing before it/,
    );
    const last = await world.inner.begin();
    last.put(keys.input("s", 1), inputRow({ id: "x", sequence: 1, overwrite: { createdAt: AT } }));
    last.delete(keys.input("s", 2));
    await last.commit();
    await expect(second.sessions.open("s")).rejects.toThrow(
      /inputs end at 2, the session counts 3/,
    );
  });

  it("recovering twice gives the same state and does not count twice", async () => {
    const world = new World();
    await writeInput(world, "s", { events: [queue, stage("t-1")] });
    const first = await recover(world);
    await first.supervisor.close();
    const second = await recover(world);
    expect(second.report).toMatchObject({ recovered: 1, requeued: 0 });
    expect((await second.session.input("input-1"))?.recoveries).toBe(1);
  });

  it("an ephemeral input of a process that crashed is forgotten, and its key is free", async () => {
    const world = new World();
    const first = await world.open();
    const session = await first.sessions.open("s");
    await session.accept({ kind: "prompt", text: "a" });
    await session.accept({
      kind: "prompt",
      text: "b",
      durability: "ephemeral",
      idempotencyKey: "k",
      id: "e-1",
    });
    world.restart();
    const second = await world.open();
    const reopened = await second.sessions.open("s", { executor: echoExecutor() });
    expect(await reopened.input("e-1")).toBeUndefined();
    const again = await reopened.accept({ kind: "prompt", text: "c", idempotencyKey: "k" });
    expect(again.outcome).toBe("accepted");
    if (again.outcome === "accepted") await again.completion;
    expect((await reopened.inputs()).items.map(({ sequence }) => sequence)).toEqual([0, 2]);
    await second.close();
    expect(await world.audit()).toEqual([]);
  });

  it("reads from the first active input on: history costs nothing (F-21)", async () => {
    const world = new World();
    const first = await world.open();
    const session = await first.sessions.open("s", { executor: echoExecutor() });
    for (let index = 0; index < 600; index += 1) {
      const admission = await session.accept({ kind: "prompt", text: `${index}` });
      if (admission.outcome === "accepted") await admission.completion;
    }
    await first.close();
    world.restart();
    const second = await world.open();
    const { list, load } = { ...world.store.counts };
    const reopened = await second.sessions.open("s");
    expect(world.store.counts.list - list).toBe(1);
    expect(world.store.counts.load - load).toBe(1);
    const before = { ...world.store.counts };
    await reopened.accept({ kind: "prompt", text: "x", idempotencyKey: "k" });
    expect(world.store.counts.load - before.load).toBe(1);
    expect(world.store.counts.commit - before.commit).toBe(1);
    await second.close();
    expect(await world.audit()).toEqual([]);
  });
});
