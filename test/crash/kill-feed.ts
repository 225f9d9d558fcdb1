/**
 * The sender of the kill test: it knows what it has sent and what was acknowledged, and sends again
 * whatever was not. It is outside of what is killed, so what it knows is what a client would know.
 */
import type { InputRequest } from "../../src/index.js";

/** What the sender knows of one key. */
export interface SentInput {
  readonly session: string;
  readonly key: string;
  readonly request: InputRequest;
  /** The ids with which its key was acknowledged, in the order of the acknowledgements. */
  readonly acknowledged: string[];
  /** The turns that completed it, as its waiters heard. */
  readonly completedBy: string[];
}

export type Feed = Readonly<Record<string, readonly InputRequest[]>>;

/** Names that a careless encoding of keys would mix up. */
export const sessionNames = ["orders", "orders/input", "ø 🛌", "\u0001"];

/** Times that the program takes for its work, in seconds. Some outlive the process that started it. */
const pauses = ["0", "0", "0", "0.005", "0.02", "0.02", "0.06", "0.3"];

export class Sender {
  /** In the order in which they are sent first. */
  readonly inputs: readonly SentInput[];
  readonly #random: () => number;
  readonly #byKey = new Map<string, SentInput>();
  #new = 0;

  constructor(count: number, random: () => number) {
    this.#random = random;
    this.inputs = Array.from({ length: count }, (_, index) => this.#make(index));
    for (const input of this.inputs) this.#byKey.set(`${input.session} ${input.key}`, input);
  }

  /** The same key names another input in each session. */
  #make(index: number): SentInput {
    const session = sessionNames[index % sessionNames.length] ?? "";
    const key = `request-${Math.floor(index / sessionNames.length)}`;
    const pause = `pause ${this.#one(pauses)}`;
    const request: InputRequest =
      this.#random() < 0.6
        ? { kind: "prompt", text: pause, idempotencyKey: key }
        : { kind: "externalEvent", eventType: pause, payload: index, idempotencyKey: key };
    return { session, key, request, acknowledged: [], completedBy: [] };
  }

  get isDone(): boolean {
    return this.inputs.every((input) => input.completedBy.length > 0);
  }

  get unsent(): number {
    return this.inputs.length - this.#new;
  }

  input(session: string, key: string): SentInput {
    const input = this.#byKey.get(`${session} ${key}`);
    if (input === undefined) throw new Error(`${key} of ${session} was never sent`);
    return input;
  }

  /**
   * What the next life is to take: `fresh` inputs that were never sent, all that were not
   * acknowledged, some of those whose end is not known, and some that ended long ago.
   */
  next(fresh: number): Feed {
    this.#new = Math.min(this.inputs.length, this.#new + fresh);
    const known = this.inputs.slice(0, this.#new);
    const repeated = known.filter((input) => {
      if (input.acknowledged.length === 0) return true;
      if (input.completedBy.length === 0) return this.#random() < 0.5;
      return this.#random() < 4 / known.length;
    });
    return this.#feed(repeated);
  }

  /** Everything whose end is not known. */
  rest(): Feed {
    this.#new = this.inputs.length;
    return this.#feed(this.inputs.filter((input) => input.completedBy.length === 0));
  }

  #feed(inputs: readonly SentInput[]): Feed {
    return Object.fromEntries(
      sessionNames.map((session) => [
        session,
        inputs.filter((input) => input.session === session).map((input) => input.request),
      ]),
    );
  }

  #one<T>(values: readonly T[]): T {
    const value = values[Math.floor(this.#random() * values.length)];
    if (value === undefined) throw new Error("nothing to choose from");
    return value;
  }
}
