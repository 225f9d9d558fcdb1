/**
 * Stories are told with one fault at the k-th commit, for k = 1, 2, 3 … until a telling ends without
 * the fault striking; then the same store is opened again, the story is finished, and the end state
 * is that of an undisturbed telling. Boundaries are counted, never listed.
 */
import { describe, expect, it } from "vitest";
import type { Fault } from "../../src/store/index.js";
import { World } from "../world.js";
import { EffectLedger, endState, type Story, stories, tell } from "./stories.js";

const TELLINGS_MAX = 12;

type Ending = "told" | "crashed" | "failed";

/** One telling under the faults that the world's store has now. */
async function telling(world: World, story: Story, ledger: EffectLedger): Promise<Ending> {
  const { store } = world;
  const crash = store.crashed.then(() => "crashed" as const);
  const run = async (): Promise<Ending> => {
    let supervisor: Awaited<ReturnType<World["open"]>> | undefined;
    try {
      supervisor = await world.open();
      const executor = ledger.executor(world);
      const session = await supervisor.sessions.open("s", { executor });
      await tell(story, session);
      await supervisor.close();
      return "told";
    } catch {
      // What the caller of a failed call does: closes, and begins again with the same keys.
      await supervisor?.close({ mode: "cancel-and-drain" });
      return "failed";
    }
  };
  return Promise.race([run(), crash]);
}

/** Tells the story again over the same store until it is told; the store is healthy by now. */
async function finish(world: World, story: Story, ledger: EffectLedger): Promise<void> {
  for (let round = 0; round < TELLINGS_MAX; round += 1) {
    world.restart();
    if ((await telling(world, story, ledger)) === "told") return;
  }
  throw new Error(`the story was not told in ${TELLINGS_MAX} rounds`);
}

async function undisturbed(story: Story): Promise<unknown> {
  const world = new World();
  await finish(world, story, new EffectLedger());
  return endState(world);
}

async function requireSound(world: World, ledger: EffectLedger, end: unknown, where: string) {
  expect(await endState(world), where).toEqual(end);
  expect(ledger.afterBoundary, where).toEqual([]);
  expect(await world.audit(), where).toEqual([]);
}

const faults: readonly Fault[] = [
  "crashBefore",
  "crashAfter",
  "unavailableBefore",
  "unavailableAfter",
  "conflict",
  "fenced",
];

describe("a fault at every commit", () => {
  for (const story of stories) {
    for (const fault of faults) {
      it(`${story.title}: ${fault} at each commit leads to the same end`, async () => {
        const end = await undisturbed(story);
        let boundaries = 0;
        for (let k = 1; ; k += 1) {
          const world = new World();
          const ledger = new EffectLedger();
          world.store.inject({ on: "commit", fault, when: (call) => call.index === k });
          const ending = await telling(world, story, ledger);
          const hasStruck = world.store.struck.length > 0;
          if (hasStruck) boundaries += 1;
          if (ending !== "told") await finish(world, story, ledger);
          await requireSound(world, ledger, end, `${fault} at commit ${k}`);
          if (!hasStruck) break;
        }
        // Opening, one admission an input, and two commits a turn at least.
        expect(boundaries).toBeGreaterThanOrEqual(1 + story.inputs.length + 2);
      });
    }
  }

  for (const fault of ["unavailableBefore", "unavailableAfter"] as const) {
    it(`every commit from the k-th on answers ${fault}: fails closed, and heals`, async () => {
      const [story] = stories;
      if (story === undefined) throw new Error("there is a story");
      const end = await undisturbed(story);
      let boundaries = 0;
      for (let k = 1; ; k += 1) {
        const world = new World();
        const ledger = new EffectLedger();
        const { store } = world;
        store.inject({
          on: "commit",
          fault,
          when: (call) => call.index >= k,
          times: 40,
        });
        const ending = await telling(world, story, ledger);
        if (store.struck.length === 0) break;
        boundaries += 1;
        store.heal();
        if (ending !== "told") await finish(world, story, ledger);
        await requireSound(world, ledger, end, `${fault} from commit ${k} on`);
      }
      expect(boundaries).toBeGreaterThanOrEqual(4);
    });
  }
});

describe("a second crash during the recovery from the first", () => {
  for (const story of stories.slice(0, 3)) {
    for (const first of ["crashBefore", "crashAfter"] as const) {
      for (const second of ["crashBefore", "crashAfter"] as const) {
        it(`${story.title}: ${first}, then ${second}, at each pair of commits`, async () => {
          const end = await undisturbed(story);
          let pairs = 0;
          for (let k = 1; ; k += 1) {
            let isFirstStruck = false;
            for (let m = 1; ; m += 1) {
              const world = new World();
              const ledger = new EffectLedger();
              world.store.inject({ on: "commit", fault: first, when: (call) => call.index === k });
              await telling(world, story, ledger);
              isFirstStruck = world.store.isCrashed;
              if (!isFirstStruck) break;
              world.restart();
              world.store.inject({ on: "commit", fault: second, when: (call) => call.index === m });
              const ending = await telling(world, story, ledger);
              const isSecondStruck = world.store.isCrashed;
              if (isSecondStruck) pairs += 1;
              if (ending !== "told") await finish(world, story, ledger);
              await requireSound(world, ledger, end, `${first} at ${k}, ${second} at ${m}`);
              if (!isSecondStruck) break;
            }
            if (!isFirstStruck) break;
          }
          expect(pairs).toBeGreaterThanOrEqual(6);
        });
      }
    }
  }
});

describe("one accept, one turn, one completion", () => {
  it("is four commits and one claim: nothing durable happens elsewhere", async () => {
    const [story] = stories;
    if (story === undefined) throw new Error("there is a story");
    const world = new World();
    expect(await telling(world, story, new EffectLedger())).toBe("told");
    // Opened and attached; admitted; staged; consumed.
    expect(world.store.counts.commit).toBe(4);
    expect(world.store.counts.claim).toBe(1);
  });
});
