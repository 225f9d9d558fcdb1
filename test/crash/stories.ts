/**
 * Stories for the crash loops: what a client does with one session, written so that it can be told
 * again from the start after any failure, as clients with idempotency keys do.
 */
import { type Executor, functionExecutor, type Session } from "../../src/index.js";
import { untilEnded, type World } from "../world.js";

/** What executors did to the world outside, and what they should not have. */
export class EffectLedger {
  /** Texts in the order in which their turns were applied. */
  readonly applied: string[] = [];
  /** Inputs that were applied after a receipt for them was durable. */
  readonly afterBoundary: string[] = [];
  readonly #failures = new Map<string, number>();

  /** Applies inputs, noting each; text `fails-n` fails its first n attempts. */
  executor(world: World): Executor {
    return functionExecutor(async ({ inputs }) => {
      const receipts = await world.rows("session", "s", "receipt");
      const proven = new Set(
        receipts.flatMap(({ value }) => (value as unknown as { inputIds: string[] }).inputIds),
      );
      const texts = inputs.map(({ inputId, payload }) => {
        const text = payload.kind === "prompt" ? payload.text : payload.kind;
        this.applied.push(text);
        if (proven.has(inputId)) this.afterBoundary.push(inputId);
        return text;
      });
      for (const text of texts) this.#failFirst(text);
      return { result: texts, messages: [{ role: "assistant", content: `did ${texts.join()}` }] };
    });
  }

  #failFirst(text: string): void {
    const wanted = Number(/^fails-(\d)$/.exec(text)?.[1] ?? 0);
    const failed = this.#failures.get(text) ?? 0;
    if (failed >= wanted) return;
    this.#failures.set(text, failed + 1);
    throw new Error(`attempt ${failed + 1} fails`);
  }
}

export interface Story {
  readonly title: string;
  /** Accepted in this order, each under its index as key. */
  readonly inputs: readonly ({ readonly prompt: string } | { readonly event: string })[];
  /** Whether each is awaited before the next is sent. */
  readonly inSteps: boolean;
}

export const stories: readonly Story[] = [
  { title: "one prompt", inputs: [{ prompt: "one" }], inSteps: true },
  {
    title: "three prompts, one after the other",
    inputs: [{ prompt: "one" }, { prompt: "two" }, { prompt: "three" }],
    inSteps: true,
  },
  {
    title: "prompts and events at once",
    inputs: [{ event: "a" }, { event: "b" }, { prompt: "one" }, { event: "c" }],
    inSteps: false,
  },
  {
    title: "a prompt that fails twice before a healthy one",
    inputs: [{ prompt: "fails-2" }, { prompt: "two" }],
    inSteps: false,
  },
];

/** Tells a story to its end. @throws whatever a call of the session throws */
export async function tell(story: Story, session: Session): Promise<void> {
  const ids: string[] = [];
  for (const [index, input] of story.inputs.entries()) {
    const header = { idempotencyKey: `key-${index}` };
    const admission = await session.accept(
      "prompt" in input
        ? { kind: "prompt", text: input.prompt, ...header }
        : { kind: "externalEvent", eventType: input.event, payload: null, ...header },
    );
    const id = admission.outcome === "deduplicated" ? admission.existingId : admission.inputId;
    ids.push(id);
    if (story.inSteps) await untilEnded(session, id);
  }
  for (const id of ids) await untilEnded(session, id);
}

/** What must be the same at the end however often the story was interrupted. */
export async function endState(world: World): Promise<unknown> {
  const inputs = await world.rows("session", "s", "input");
  const texts = new Map<string, string>();
  const ended = inputs.map(({ value }) => {
    const row = value as {
      id: string;
      payload: { text?: string; eventType?: string };
      snapshot: { value: string; context: { outcome: unknown } };
    };
    const text = row.payload.text ?? row.payload.eventType ?? "";
    texts.set(row.id, text);
    return { text, phase: row.snapshot.value, outcome: row.snapshot.context.outcome };
  });
  const receipts = await world.rows("session", "s", "receipt");
  const consumed = receipts.flatMap(({ value }) =>
    (value as unknown as { inputIds: string[] }).inputIds.map((id) => texts.get(id)),
  );
  const session = (await world.inner.load(["session", "s"]))?.value as unknown as {
    snapshot: { value: string; context: { turnId: unknown } };
    ledger: { unfinished: number; nextInput: number; endedKeys: number };
  };
  const { unfinished, nextInput, endedKeys } = session.ledger;
  return {
    inputs: ended,
    consumed: consumed.sort(),
    state: session.snapshot.value,
    turnId: session.snapshot.context.turnId,
    counts: { unfinished, nextInput, endedKeys },
    active: (await world.rows("active-session")).length,
    keys: (await world.rows("session", "s", "key")).map(({ key }) => key[3]),
  };
}
