/** Faults found in the field that no other test stands for. */
import { expect, it } from "vitest";
import { functionExecutor } from "../../src/index.js";
import { untilRest } from "../test-clock.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, untilEnded, World } from "../world.js";

it("F-04: nobody sees an input consumed before its receipt is durable", async () => {
  const world = new World();
  const executor = new ScriptedExecutor();
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s", { executor });
  const admission = await acceptPrompt(session, "x");
  const turn = await executor.next();
  let isTold = false;
  void admission.completion.then(() => {
    isTold = true;
  });
  const gate = world.store.hold({ on: "commit" });
  turn.resolve({ result: 1 });
  await gate.reached;
  await untilRest();
  expect((await session.input(admission.inputId))?.phase).toBe("staged");
  expect(session.state()).toBe("running");
  expect(await world.rows("session", "s", "receipt")).toEqual([]);
  expect(isTold).toBe(false);
  gate.release();
  await admission.completion;
  expect((await session.input(admission.inputId))?.phase).toBe("consumed");
  expect(await world.rows("session", "s", "receipt")).toHaveLength(1);
  await supervisor.close();
});

it("F-09: a batch with one bad member loses none: all go back, and all are consumed together", async () => {
  const world = new World();
  const turns: unknown[][] = [];
  const executor = functionExecutor(({ inputs }) => {
    turns.push(inputs.map(({ payload }) => (payload as { eventType: string }).eventType));
    if (turns.length === 1) throw new Error("b is bad");
    return {};
  });
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s");
  for (const eventType of ["a", "b", "c"]) {
    await session.accept({ kind: "externalEvent", eventType, payload: null });
  }
  await supervisor.sessions.open("s", { executor });
  const { items } = await session.inputs();
  for (const { inputId } of items) await untilEnded(session, inputId);
  expect(turns).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
  const after = await session.inputs();
  expect(after.items.map(({ phase, attempts }) => [phase, attempts])).toEqual(
    Array(3).fill(["consumed", 2]),
  );
  await supervisor.close();
  expect(await world.audit()).toEqual([]);
});

it("F-18: a kill after any commit leaves a session that goes on to the same end", async () => {
  const story = async (world: World) => {
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
    const admissions = [];
    for (const text of ["a", "b"]) admissions.push(await acceptPrompt(session, text, text));
    for (const { completion } of admissions) await completion;
    await session.retire();
    await supervisor.close();
  };
  const whole = new World();
  await story(whole);
  const commits = whole.store.counts.commit;
  expect(commits).toBeGreaterThan(6);
  for (let index = 1; index <= commits; index += 1) {
    const world = new World();
    world.store.inject({ on: "commit", when: (call) => call.index === index, fault: "crashAfter" });
    await Promise.race([story(world), world.store.crashed]);
    expect(world.store.isCrashed).toBe(true);
    world.restart();
    expect(await world.audit()).toEqual([]);
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
    if (session.state() === "retired") await session.reset();
    for (const text of ["a", "b"]) {
      const again = await session.accept({ kind: "prompt", text, idempotencyKey: text });
      if (again.outcome !== "rejected") await again.completion;
    }
    const { items } = await session.inputs();
    expect(items.map(({ phase }) => phase)).toEqual(["consumed", "consumed"]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  }
});
