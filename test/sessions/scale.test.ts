/** Many sessions, many senders, and a queue that is full: counted, never timed. */
import { expect, it } from "vitest";
import { CapacityError } from "../../src/index.js";
import { acceptPrompt, echoExecutor, World } from "../world.js";

it("10,000 sessions with one input each go through one supervisor, three commits each", async () => {
  const world = new World();
  const supervisor = await world.open();
  const executor = echoExecutor();
  const ids = Array.from({ length: 10_000 }, (_, index) => `s-${index}`);
  const sessions = await Promise.all(ids.map((id) => supervisor.sessions.open(id, { executor })));
  const opened = world.store.counts.commit;
  const completions = await Promise.all(
    sessions.map(async (session) => (await acceptPrompt(session, session.id)).completion),
  );
  expect(completions).toEqual(ids.map((id) => ({ type: "completed", result: [id] })));
  // Each input is admitted, staged and proven: three commits, whoever else is there.
  expect(world.store.counts.commit - opened).toBe(3 * ids.length);
  await supervisor.close();
  expect(await world.audit()).toEqual([]);
}, 120_000);

it("1,000 senders at once to one session are all admitted, in one order, and each is answered", async () => {
  const world = new World();
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
  const texts = Array.from({ length: 1_000 }, (_, index) => `${index}`);
  const admissions = await Promise.all(texts.map((text) => acceptPrompt(session, text)));
  const completions = await Promise.all(admissions.map(({ completion }) => completion));
  expect(completions).toEqual(texts.map((text) => ({ type: "completed", result: [text] })));
  const rows = await world.rows("session", "s", "receipt");
  expect(rows).toHaveLength(1_000);
  await supervisor.close();
  expect(await world.audit()).toEqual([]);
});

it("a full queue is a CapacityError for whoever sends to it; nobody else notices", async () => {
  const world = new World();
  const supervisor = await world.open();
  const full = await supervisor.sessions.open("full");
  const queueMax = 4_096;
  await Promise.all(Array.from({ length: queueMax }, (_, index) => acceptPrompt(full, `${index}`)));
  const other = await supervisor.sessions.open("other", { executor: echoExecutor() });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0 ? acceptPrompt(full, "more") : acceptPrompt(other, `${index}`),
    ),
  );
  for (const [index, outcome] of outcomes.entries()) {
    if (index % 2 === 1) expect(outcome.status).toBe("fulfilled");
    else if (outcome.status === "fulfilled") throw new Error("a full queue took one more");
    else expect(outcome.reason).toBeInstanceOf(CapacityError);
  }
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") {
      expect((await outcome.value.completion).type).toBe("completed");
    }
  }
  expect((await full.snapshot()).inputs).toEqual({ admitted: queueMax, unfinished: queueMax });
  await supervisor.close();
  expect(await world.audit()).toEqual([]);
}, 120_000);

it("F-21: accepting reads and writes as much in a long history as in a short one", async () => {
  const world = new World();
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
  const costs: (readonly number[])[] = [];
  for (let index = 0; index < 2_000; index += 1) {
    const before = { ...world.store.counts };
    const { completion } = await acceptPrompt(session, "x", `k-${index}`);
    await completion;
    const { load, list, txLoad, commit } = world.store.counts;
    costs.push([
      load - before.load,
      list - before.list,
      txLoad - before.txLoad,
      commit - before.commit,
    ]);
  }
  expect(costs[1_999]).toEqual(costs[10]);
  await supervisor.close();
});
