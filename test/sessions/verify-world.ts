/** A store after real work, and rows that are edited behind the back of its sessions. */
import { functionExecutor, type Supervisor } from "../../src/index.js";
import { keys } from "../../src/sessions/records.js";
import { auditSessions, type Finding } from "../../src/sessions/verify.js";
import type { JsonObject, JsonValue, Key, StateStore } from "../../src/store/index.js";
import { acceptPrompt, ScriptedExecutor, World } from "../world.js";

/** Rows edited behind the back of the sessions, and what an audit says then. */
export class Edited {
  readonly store: StateStore;

  constructor(store: StateStore) {
    this.store = store;
  }

  async value(key: Key): Promise<JsonObject> {
    const record = await this.store.load(key);
    if (record === undefined) throw new Error(`there is no row ${key.join("/")}`);
    return record.value as JsonObject;
  }

  /** Writes fields over those of a row; a path of names reaches into it. */
  async set(key: Key, path: string, value: JsonValue): Promise<void> {
    await this.put(key, withValue(await this.value(key), path.split("."), value));
  }

  async put(key: Key, value: JsonValue): Promise<void> {
    const transaction = await this.store.begin();
    transaction.put(key, value);
    await transaction.commit();
  }

  async remove(...removed: readonly Key[]): Promise<void> {
    const transaction = await this.store.begin();
    for (const key of removed) {
      await this.value(key);
      transaction.delete(key);
    }
    await transaction.commit();
  }

  async under(prefix: Key): Promise<readonly Key[]> {
    const { records } = await this.store.list({ prefix, limit: 256 });
    return records.map(({ key }) => key);
  }

  /** The turn that consumed an input. */
  async turnOf(sequence: number, session = "work"): Promise<string> {
    const { snapshot } = (await this.value(keys.input(session, sequence))) as {
      readonly snapshot: { readonly context: { readonly lastTurnId: string } };
    };
    return snapshot.context.lastTurnId;
  }

  async idOf(sequence: number, session = "work"): Promise<string> {
    return String((await this.value(keys.input(session, sequence))).id);
  }

  async audit(): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    await auditSessions(this.store, (finding) => findings.push(finding));
    return findings;
  }
}

function withValue(target: JsonValue, path: readonly string[], value: JsonValue): JsonValue {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (Array.isArray(target)) {
    return target.map((item, at) => (String(at) === name ? withValue(item, rest, value) : item));
  }
  const object = target as JsonObject;
  return { ...object, [name]: withValue(object[name] ?? null, rest, value) };
}

/**
 * `work` has ended inputs of every kind: prompts, a batch, an operation, one given up, a callback.
 * `waiting` holds inputs and no executor, `busy` was cut off in its turn, `rest` has nothing to do.
 */
export async function realWork(): Promise<World> {
  const world = new World();
  const first = await world.open();
  const executor = functionExecutor(({ inputs }) => {
    const [{ payload } = { payload: undefined }] = inputs;
    if (payload?.kind === "prompt" && payload.text === "fail") throw new Error("no");
    if (payload?.kind === "prompt" && payload.text === "ask") {
      return { callback: { tool: "ask", args: { who: "me" } } };
    }
    return { messages: [{ role: "assistant", content: "done" }], result: inputs.length };
  });
  const work = await first.sessions.open("work", { executor });
  for (const text of ["zero", "one", "two"]) {
    await (await acceptPrompt(work, text, `key-${text}`)).completion;
  }
  await (await acceptPrompt(work, "ask")).completion;
  await lastEnd(first, "work", (await acceptPrompt(work, "fail", "key-fail")).inputId);
  await work.accept({ kind: "operation", operationId: "o", event: 1, idempotencyKey: "op" });
  const events = await Promise.all(
    ["a", "b", "c"].map((eventType) =>
      work.accept({ kind: "externalEvent", eventType, payload: 1 }),
    ),
  );
  for (const event of events) if (event.outcome === "accepted") await event.completion;
  const waiting = await first.sessions.open("waiting");
  for (const text of ["x", "y", "z"]) await acceptPrompt(waiting, text, `key-${text}`);
  await first.sessions.open("rest");
  await first.close();

  // Never closed: what is left is what a killed process leaves.
  const second = await world.open();
  const scripted = new ScriptedExecutor();
  const busy = await second.sessions.open("busy", { executor: scripted });
  const cut = await acceptPrompt(busy, "first");
  (await scripted.next()).resolve({ result: "first" });
  await cut.completion;
  await acceptPrompt(busy, "second", "key-second");
  await scripted.next();
  await acceptPrompt(busy, "third");
  return world;
}

/** Follows an input over its attempts. */
export async function lastEnd(supervisor: Supervisor, id: string, inputId: string): Promise<void> {
  const session = await supervisor.sessions.get(id);
  let end = await session.completion(inputId);
  while (end.type === "abandoned" && end.willRetry) end = await session.completion(inputId);
}
