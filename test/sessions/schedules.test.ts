/**
 * Every order of accepting, ending a turn, cancelling and unregistering: no input that was accepted is
 * forgotten, nobody waits for ever, and the store is sound.
 */
import { expect, it } from "vitest";
import type { Completion, Executor, Session, TurnRequest, TurnResult } from "../../src/index.js";
import { isHoldfastError } from "../../src/index.js";
import { untilRest } from "../test-clock.js";
import { echoExecutor, World } from "../world.js";

type Step = "accept" | "end" | "cancel" | "unregister";

/**
 * Eight steps each. Unregistering ends whoever waits, which would hide a wake that was lost; so half
 * of the orders go without.
 */
const steps: readonly Readonly<Record<Step, number>>[] = [
  { accept: 3, end: 3, cancel: 1, unregister: 1 },
  { accept: 4, end: 2, cancel: 2, unregister: 0 },
];

/** Every order of the steps, each once. */
function* orders(left: Readonly<Record<Step, number>>): Generator<readonly Step[]> {
  const open = (Object.keys(left) as Step[]).filter((step) => left[step] > 0);
  if (open.length === 0) yield [];
  for (const step of open) {
    for (const rest of orders({ ...left, [step]: left[step] - 1 })) yield [step, ...rest];
  }
}

/** How far the process gets between two steps. */
const gaps: Readonly<Record<string, () => Promise<void> | undefined>> = {
  "at rest after each": untilRest,
  "one round of the event loop apart": () => new Promise((resolve) => setImmediate(resolve)),
  "all at once": () => undefined,
};

/** Turns that end when the schedule says so, and at the end all by themselves. */
class HeldExecutor implements Executor {
  readonly #open: (() => void)[] = [];
  #isFree = false;

  apply({ inputs, signal }: TurnRequest): Promise<TurnResult> {
    const result = { result: inputs.length };
    if (this.#isFree) return Promise.resolve(result);
    return new Promise((resolve, reject) => {
      this.#open.push(() => resolve(result));
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  }

  endOne(): void {
    this.#open.shift()?.();
  }

  free(): void {
    this.#isFree = true;
    for (const end of this.#open.splice(0)) end();
  }
}

class Run {
  readonly #world = new World();
  readonly #executor = new HeldExecutor();
  readonly #accepted: string[] = [];
  readonly #calls: Promise<unknown>[] = [];
  readonly #completions: Promise<Completion>[] = [];

  async run(
    order: readonly Step[],
    gap: (index: number) => Promise<void> | undefined,
  ): Promise<void> {
    const supervisor = await this.#world.open();
    const session = await supervisor.sessions.open("s", { executor: this.#executor });
    for (const [index, step] of order.entries()) {
      this.#calls.push(this.#take(step, session).catch(expectRefusal));
      await gap(index);
    }
    this.#executor.free();
    await Promise.all(this.#calls);
    // In a rest nothing is under way that could still wake the loop: who waits now, waits for ever.
    await untilRest();
    const waiters = Promise.all(this.#completions).then(() => "told");
    expect(await Promise.race([waiters, untilRest().then(() => order.join(" "))])).toBe("told");
    // What unregistering left is done by whoever registers the session next.
    const again = await supervisor.sessions.open("s", { executor: echoExecutor() });
    for (const id of this.#accepted) await again.completion(id);
    const { items } = await again.inputs();
    expect(items.map(({ inputId }) => inputId).sort()).toEqual([...this.#accepted].sort());
    const ends = items.map(({ outcome }) => outcome);
    expect(
      ends.filter((end) => end?.type !== "consumed" && !isCancelled(end)),
      order.join(" "),
    ).toEqual([]);
    expect(ends.filter(isCancelled).length).toBeLessThanOrEqual(2);
    await supervisor.close();
    expect(await this.#world.audit()).toEqual([]);
  }

  async #take(step: Step, session: Session): Promise<void> {
    if (step === "end") return this.#executor.endOne();
    if (step === "cancel") return session.cancelTurn();
    if (step === "unregister") return session.unregister();
    const admission = await session.accept({ kind: "prompt", text: "x" });
    if (admission.outcome !== "accepted") throw new Error(`found ${admission.outcome}`);
    this.#accepted.push(admission.inputId);
    this.#completions.push(admission.completion);
  }
}

const isCancelled = (outcome: { readonly type: string; readonly reason?: unknown } | null) =>
  outcome?.type === "abandoned" && JSON.stringify(outcome).includes("cancelled");

/** A step that comes at the wrong moment is refused with a reason; nothing else may happen to it. */
function expectRefusal(error: unknown): void {
  if (!isHoldfastError(error) || !["NotReadyError", "ClosedError"].includes(error._tag))
    throw error;
}

it.each(Object.entries(gaps))(
  "F-06, F-13, F-15: no wake and no waiter is lost in any order of 8 steps, %s",
  async (_, gap) => {
    let count = 0;
    for (const left of steps) {
      for (const order of orders(left)) {
        await new Run().run(order, gap);
        count += 1;
      }
    }
    expect(count).toBe(1_120 + 420);
  },
  300_000,
);

/** More than the end of a turn takes, from the executor's answer to the loop at rest. */
const MICROTASKS_MAX = 200;

it.each(["accept", "cancel", "unregister"] as const)(
  "F-06: at each microtask around the end of a turn, %s is neither lost nor in the way",
  async (step) => {
    for (let microtasks = 0; microtasks < MICROTASKS_MAX; microtasks += 1) {
      await new Run().run(["accept", "end", step, "end"], async (index) => {
        if (index !== 1) return untilRest();
        for (let left = microtasks; left > 0; left -= 1) await undefined;
      });
    }
  },
);
