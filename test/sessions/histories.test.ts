/**
 * Random histories of a session against a small model of what must hold: who is admitted, what is
 * deduplicated and replaced, which inputs may share a turn, and that each ends once, whatever the
 * store does meanwhile. The model knows no statecharts.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  type Executor,
  IdempotencyConflictError,
  type InputRequest,
  isHoldfastError,
  type Session,
  type Supervisor,
  type TurnRequest,
} from "../../src/index.js";
import { untilRest } from "../test-clock.js";
import { ScriptedExecutor, type ScriptedTurn, World } from "../world.js";

const scale = Number(process.env.HOLDFAST_TEST_SCALE ?? 1);
const HISTORIES = 2_000 * scale;
const OPERATIONS = 60;
const ATTEMPTS_MAX = 3;

const kinds = ["prompt", "event", "continuation", "progress", "silent"] as const;

interface Accept {
  readonly type: "accept";
  readonly kind: (typeof kinds)[number];
  readonly text: string;
  readonly key: string | undefined;
  readonly supersessionKey: string | undefined;
  readonly handling: "queue" | "steer" | undefined;
}
interface StoreFault {
  readonly type: "fault";
  readonly fault: "unavailableBefore" | "unavailableAfter" | "conflict";
  readonly after: number;
}
type Operation =
  | Accept
  | StoreFault
  | { readonly type: "rest" | "end" | "fail" | "cancel" | "restart" };

const accept: fc.Arbitrary<Accept> = fc.record({
  type: fc.constant("accept" as const),
  kind: fc.constantFrom(...kinds),
  text: fc.constantFrom("a", "b"),
  key: fc.option(fc.constantFrom("k1", "k2", "k3", "k4", "k5", "k6"), { nil: undefined, freq: 2 }),
  supersessionKey: fc.option(fc.constantFrom("s1", "s2"), { nil: undefined, freq: 3 }),
  handling: fc.option(fc.constantFrom("queue" as const, "steer" as const), {
    nil: undefined,
    freq: 3,
  }),
});
const fault: fc.Arbitrary<StoreFault> = fc.record({
  type: fc.constant("fault" as const),
  fault: fc.constantFrom(
    "unavailableBefore" as const,
    "unavailableAfter" as const,
    "conflict" as const,
  ),
  after: fc.integer({ min: 1, max: 3 }),
});
const simple = (type: "rest" | "end" | "fail" | "cancel" | "restart") => fc.constant({ type });
const operation: fc.Arbitrary<Operation> = fc.oneof(
  // A history that is at fault shrinks towards one that does next to nothing.
  { withCrossShrink: true },
  { weight: 1, arbitrary: simple("rest") },
  { weight: 10, arbitrary: accept },
  { weight: 6, arbitrary: simple("end") },
  { weight: 3, arbitrary: simple("fail") },
  { weight: 1, arbitrary: simple("cancel") },
  { weight: 1, arbitrary: simple("restart") },
  { weight: 2, arbitrary: fault },
);

function requestOf(id: string, of: Accept): InputRequest {
  const handling = of.handling === undefined ? {} : { handling: of.handling };
  const common = {
    id,
    ...(of.key === undefined ? {} : { idempotencyKey: of.key }),
    ...(of.supersessionKey === undefined ? {} : { supersessionKey: of.supersessionKey }),
  };
  const peer = { kind: "peer", body: of.text, origin: { type: "peer", peerId: "p" } } as const;
  switch (of.kind) {
    case "prompt":
      return { ...common, ...handling, kind: "prompt", text: of.text };
    case "event":
      return { ...common, ...handling, kind: "externalEvent", eventType: of.text, payload: null };
    case "continuation":
      return { ...common, ...handling, kind: "continuation", reason: of.text };
    case "progress":
      return {
        ...common,
        ...peer,
        convention: { type: "responseProgress", requestId: "r", phase: of.text },
      };
    case "silent":
      return {
        ...common,
        ...peer,
        convention: { type: "request", requestId: "r", intent: "quiet" },
      };
  }
}

/** What the model knows of an input. */
interface Known {
  readonly id: string;
  readonly of: Accept;
  readonly order: number;
  phase: string;
  /** Turns that failed with it. */
  failures: number;
}

const ENDED = new Set(["consumed", "superseded", "coalesced", "abandoned"]);
const isSteer = ({ of }: Known): boolean =>
  of.kind === "progress"
    ? true
    : of.kind === "silent"
      ? false
      : of.handling === undefined
        ? of.kind === "continuation"
        : of.handling === "steer";
/** Whether it opens a turn; the others ride along. */
const drives = ({ of }: Known): boolean => of.kind !== "progress" && of.kind !== "silent";

/** Inputs of one scope replace each other while they wait. */
function scopeOf({ kind, supersessionKey }: Accept): string | undefined {
  const peers = kind === "progress" || kind === "silent";
  if (supersessionKey !== undefined) return `${peers ? "peer" : kind} ${supersessionKey}`;
  return kind === "progress" ? "progress on r" : undefined;
}

class History {
  readonly #world: World;
  readonly #known = new Map<string, Known>();
  readonly #keys = new Map<string, Known>();
  #executor!: CheckedExecutor;
  #supervisor!: Supervisor;
  #session!: Session;
  #next = 0;

  constructor(seed: number) {
    this.#world = new World({ seed });
  }

  async run(operations: readonly Operation[]): Promise<void> {
    await this.#open();
    for (const each of operations) {
      await this.#take(each);
      await this.#settle();
    }
    await this.#finish();
  }

  async #open(): Promise<void> {
    this.#executor = new CheckedExecutor((request) => this.#checkBatch(request));
    this.#supervisor = await this.#world.open();
    this.#session = await this.#supervisor.sessions.open("s", {
      executor: this.#executor,
      silentIntents: ["quiet"],
    });
  }

  async #restart(): Promise<void> {
    this.#executor.isOver = true;
    this.#world.restart();
    await this.#open();
  }

  async #take(each: Operation): Promise<void> {
    const turn = this.#executor.open;
    switch (each.type) {
      case "accept":
        return this.#accept(each);
      case "fault": {
        const { fault, after } = each;
        const due = this.#world.store.counts.commit + after;
        this.#world.store.inject({ on: "commit", when: ({ index }) => index >= due, fault });
        return;
      }
      case "end":
        return this.#executor.end((open) => open.resolve({ result: 1 }));
      case "fail":
        for (const { inputId } of turn?.request.inputs ?? []) this.#get(inputId).failures += 1;
        return this.#executor.end((open) => open.reject(new Error("no")));
      case "cancel":
        return this.#session.cancelTurn().catch(expectTyped);
      case "rest":
        return;
      case "restart":
        return this.#restart();
    }
  }

  async #accept(of: Accept): Promise<void> {
    this.#next += 1;
    const id = `00000000-0000-7000-8000-${String(this.#next).padStart(12, "0")}`;
    const existing = of.key === undefined ? undefined : this.#keys.get(of.key);
    const isSame = existing?.of.kind === of.kind && samePayload(existing.of, of);
    const scope = scopeOf(of);
    const waiting = [...this.#known.values()].filter(
      (other) => other.phase === "queued" && scope !== undefined && scopeOf(other.of) === scope,
    );
    let found: Awaited<ReturnType<Session["accept"]>>;
    try {
      found = await this.#session.accept(requestOf(id, of));
    } catch (error) {
      if (error instanceof IdempotencyConflictError) {
        expect([existing?.id, isSame]).toEqual([error.existingId, false]);
      } else {
        expectTyped(error);
        // Whether it was admitted is for the store to say; its key finds out.
        if ((await this.#session.input(id)) !== undefined) this.#admit(id, of);
      }
      return;
    }
    if (found.outcome === "deduplicated") {
      expect([found.existingId, true]).toEqual([existing?.id, isSame]);
      return;
    }
    expect([found.outcome, existing]).toEqual(["accepted", undefined]);
    this.#admit(id, of);
    // At most one is replaced, and by the one that came.
    const replaced = [];
    for (const other of waiting) {
      const { phase, outcome } = (await this.#session.input(other.id)) ?? {};
      if (phase !== "superseded" && phase !== "coalesced") continue;
      expect(JSON.stringify(outcome)).toContain(id);
      replaced.push(other);
    }
    expect(replaced.length).toBe(Math.min(waiting.length, 1));
  }

  #admit(id: string, of: Accept): void {
    const known: Known = { id, of, order: this.#next, phase: "queued", failures: 0 };
    this.#known.set(id, known);
    if (of.key !== undefined) this.#keys.set(of.key, known);
  }

  /** What an executor is given is work that waits, in a batch that may be one. */
  #checkBatch({ inputs }: TurnRequest): void {
    const batch = inputs.map(({ inputId }) => this.#get(inputId));
    for (const { phase } of batch) expect(ENDED.has(phase), phase).toBe(false);
    const drivers = batch.filter(drives);
    expect(drivers.length).toBeGreaterThan(0);
    // Of the queue lane, a prompt is alone among those that drive.
    const queued = drivers.filter((input) => !isSteer(input));
    if (queued.some(({ of }) => of.kind === "prompt")) expect(queued).toHaveLength(1);
    // Drivers of both lanes never share a turn, since the steer lane goes first.
    expect(new Set(drivers.map(isSteer)).size).toBe(1);
    for (const lane of [true, false]) {
      const fresh = batch.filter((input) => isSteer(input) === lane && input.failures === 0);
      const order = fresh.map((input) => input.order);
      expect(order).toEqual([...order].sort((a, b) => a - b));
    }
  }

  /** Lets everything come to rest, then compares what is stored with what the model knows. */
  async #settle(): Promise<void> {
    for (let round = 0; round < 200; round += 1) {
      await untilRest();
      if (this.#executor.fault !== undefined) throw this.#executor.fault;
      await this.#compare();
      const waits = [...this.#known.values()].filter((input) => !ENDED.has(input.phase));
      if (this.#executor.open !== undefined || !waits.some(drives)) return;
    }
    throw new Error("the loop parked while work waits");
  }

  async #compare(): Promise<void> {
    const { items } = await this.#session.inputs({ limit: 256 });
    expect(items.map(({ inputId }) => inputId).sort()).toEqual([...this.#known.keys()].sort());
    for (const { inputId, phase, attempts, recoveries, outcome } of items) {
      const known = this.#get(inputId);
      if (ENDED.has(known.phase)) expect(phase).toBe(known.phase);
      if (phase === "abandoned" && known.phase !== phase) {
        const reason = JSON.stringify(outcome);
        expect(reason).toMatch(/cancelled|maxAttemptsExhausted/);
        if (!reason.includes("cancelled"))
          expect(known.failures).toBeGreaterThanOrEqual(ATTEMPTS_MAX);
      }
      expect(attempts - recoveries).toBeLessThanOrEqual(ATTEMPTS_MAX);
      known.phase = phase;
    }
  }

  /** Without faults, all that can end does; each input that was consumed has one receipt. */
  async #finish(): Promise<void> {
    await this.#restart();
    await this.#settle();
    while (this.#executor.open !== undefined) {
      await this.#take({ type: "end" });
      await this.#settle();
    }
    await this.#supervisor.close();
    const receipts = await this.#world.rows("session", "s", "receipt");
    const proven = receipts.flatMap(({ value }) => (value as { inputIds: string[] }).inputIds);
    const consumed = [...this.#known.values()].filter(({ phase }) => phase === "consumed");
    expect([...proven].sort()).toEqual(consumed.map(({ id }) => id).sort());
    expect(await this.#world.audit()).toEqual([]);
  }

  #get(id: string): Known {
    const known = this.#known.get(id);
    if (known === undefined) throw new Error(`the model does not know ${id}`);
    return known;
  }
}

/** Asks the model about every batch, and keeps the turn in progress. */
class CheckedExecutor implements Executor {
  readonly #scripted = new ScriptedExecutor();
  readonly #check: (request: TurnRequest) => void;
  open: ScriptedTurn | undefined;
  /** What the model has found against a batch. */
  fault: unknown;
  /** Its process is gone; nobody hears what it says. */
  isOver = false;

  constructor(check: (request: TurnRequest) => void) {
    this.#check = check;
  }

  async apply(request: TurnRequest) {
    if (this.isOver) return new Promise<never>(() => {});
    try {
      this.#check(request);
    } catch (error) {
      // A turn that throws is tried again, which would hide what the model has found.
      this.fault ??= error;
    }
    const answer = this.#scripted.apply(request);
    const turn = await this.#scripted.next();
    this.open = turn;
    request.signal.addEventListener("abort", () => {
      if (this.open === turn) this.open = undefined;
      turn.reject(request.signal.reason);
    });
    return answer;
  }

  end(how: (turn: ScriptedTurn) => void): void {
    const turn = this.open;
    this.open = undefined;
    if (turn !== undefined) how(turn);
  }
}

/** A handling that is not stated is the kind's own; progress and silent requests have none here. */
function samePayload(one: Accept, other: Accept): boolean {
  const handlingOf = ({ kind, handling }: Accept) =>
    kind === "progress" || kind === "silent" ? undefined : handling;
  return one.text === other.text && handlingOf(one) === handlingOf(other);
}

function expectTyped(error: unknown): void {
  if (!isHoldfastError(error) || error._tag === "AssertionError") throw error;
}

it(`${HISTORIES} random histories of ${OPERATIONS} operations with store faults keep every rule`, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(operation, { minLength: OPERATIONS, maxLength: OPERATIONS }),
      fc.nat(),
      (operations, seed) => new History(seed).run(operations),
    ),
    { numRuns: HISTORIES },
  );
}, 900_000);
