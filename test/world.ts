/**
 * A world for tests: a store behind faults, a test clock, seeded ids and pauses, and
 * supervisors over it. The store outlives a supervisor that crashes.
 */

import {
  type Clock,
  type Executor,
  functionExecutor,
  type Limits,
  type Session,
  Supervisor,
  type TurnRequest,
  type TurnResult,
} from "../src/index.js";
import { uuid7 } from "../src/kernel/ids.js";
import { auditSessions } from "../src/sessions/verify.js";
import { type FailingStore, failingStore, type StateStore } from "../src/store/index.js";
import { TestClock } from "./test-clock.js";
import { worldStore } from "./world-store.js";

export interface WorldOptions {
  readonly clock?: "held" | "jumping";
  readonly limits?: Partial<Limits>;
  readonly seed?: number;
}

export class World {
  /** The store itself; it survives crashes. */
  readonly inner: StateStore;
  readonly clock: TestClock;
  readonly limits: Partial<Limits>;
  /** The faults around the store for supervisors that are opened from here on. */
  store: FailingStore;
  readonly #random: () => number;

  constructor({ clock = "jumping", limits = {}, seed = 1 }: WorldOptions = {}) {
    this.inner = worldStore();
    this.clock = new TestClock({ mode: clock });
    this.limits = limits;
    this.store = failingStore(this.inner);
    this.#random = seededRandom(seed);
  }

  open(options: { readonly clock?: Clock; readonly limits?: Partial<Limits> } = {}) {
    return Supervisor.open({
      store: this.store,
      clock: options.clock ?? this.clock,
      limits: { ...this.limits, ...options.limits },
      ids: uuid7((bytes) => Uint8Array.from({ length: bytes }, () => this.#random() * 256)),
      random: this.#random,
    });
  }

  /** The process ends, in the middle of what it does; the next finds the same store, new faults. */
  restart(): void {
    this.store.inject({
      on: ["load", "list", "claim", "begin", "txLoad", "commit", "rollback"],
      fault: "crashBefore",
    });
    this.store = failingStore(this.inner);
  }

  /** All faults that the audit of the store finds, as text. Nobody may write meanwhile. */
  async audit(): Promise<readonly string[]> {
    const findings: string[] = [];
    await auditSessions(this.inner, (finding) => findings.push(JSON.stringify(finding)));
    return findings;
  }

  /** Every record under a prefix, straight from the store. */
  async rows(...prefix: readonly string[]) {
    const rows = [];
    let after: readonly string[] | undefined;
    do {
      const page = await this.inner.list({ prefix, limit: 256, ...(after && { after }) });
      rows.push(...page.records);
      after = page.next;
    } while (after !== undefined);
    return rows;
  }
}

/** Numbers from 0 to 1 that are the same in every run (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** An executor whose turns the test answers one by one. */
export class ScriptedExecutor implements Executor {
  readonly turns: ScriptedTurn[] = [];
  isStopped = false;
  cancels = 0;
  readonly #arrivals: ((turn: ScriptedTurn) => void)[] = [];
  #taken = 0;

  apply(request: TurnRequest): Promise<TurnResult> {
    return new Promise((resolve, reject) => {
      const turn: ScriptedTurn = { request, resolve, reject };
      this.turns.push(turn);
      this.#arrivals.shift()?.(turn);
    });
  }

  cancel(): void {
    this.cancels += 1;
  }

  stop(): void {
    this.isStopped = true;
  }

  /** The next turn that begins, or has begun and was not asked for yet. */
  async next(): Promise<ScriptedTurn> {
    this.#taken += 1;
    const turn = this.turns[this.#taken - 1];
    return turn ?? new Promise((resolve) => this.#arrivals.push(resolve));
  }
}

export interface ScriptedTurn {
  readonly request: TurnRequest;
  resolve(result: TurnResult): void;
  reject(error: unknown): void;
}

/** Answers every turn with the texts of its prompts. */
export function echoExecutor(): Executor {
  return functionExecutor(({ inputs }) => ({
    result: inputs.map(({ payload }) => (payload.kind === "prompt" ? payload.text : payload.kind)),
  }));
}

/** Waits for an input through all of its attempts. @throws Error nobody will end it in this process */
export async function untilEnded(session: Session, inputId: string): Promise<void> {
  while ((await session.input(inputId))?.outcome === null) {
    const completion = await session.completion(inputId);
    if (completion.type === "terminated") throw new Error(completion.reason);
  }
}

/** Accepts a prompt and gives its id and completion; anything but acceptance fails the test. */
export async function acceptPrompt(session: Session, text: string, idempotencyKey?: string) {
  const admission = await session.accept({
    kind: "prompt",
    text,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
  if (admission.outcome !== "accepted") {
    throw new Error(`expected an accepted input, found ${admission.outcome}`);
  }
  return admission;
}
