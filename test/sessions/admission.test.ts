import { describe, expect, it } from "vitest";
import {
  CapacityError,
  IdempotencyConflictError,
  type InputRequest,
  NotReadyError,
  OperationError,
  StoreUnavailable,
  ValidationError,
} from "../../src/index.js";
import { keys } from "../../src/sessions/records.js";
import { acceptPrompt, echoExecutor, ScriptedExecutor, World } from "../world.js";

async function openSession(world = new World()) {
  const supervisor = await world.open();
  const session = await supervisor.sessions.open("s");
  return { world, supervisor, session };
}

describe("admission", () => {
  it("S-000-01: an input that is accepted on an empty store has its row with its payload", async () => {
    const { world, session } = await openSession();
    const admission = await acceptPrompt(session, "hello");
    expect(admission.state).toBe("queued");
    const rows = await world.rows("session", "s", "input");
    expect(rows).toHaveLength(1);
    expect(rows[0]?.value).toMatchObject({
      id: admission.inputId,
      payload: { kind: "prompt", text: "hello" },
      snapshot: { value: "queued" },
    });
  });

  it("S-000-02: a second prompt under one key is deduplicated and leaves exactly one row", async () => {
    const { world, session } = await openSession();
    const first = await acceptPrompt(session, "hello", "req-1");
    const second = await session.accept({ kind: "prompt", text: "hello", idempotencyKey: "req-1" });
    expect(second).toMatchObject({
      outcome: "deduplicated",
      existingId: first.inputId,
      state: "queued",
    });
    expect(await world.rows("session", "s", "input")).toHaveLength(1);
  });

  it("S-000-08: a failed persist leaves nothing, and the same input is then accepted (F-01)", async () => {
    const { world, session } = await openSession();
    const before = await world.rows();
    const fault = world.store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
    const request = { kind: "prompt", text: "hello", id: "i-1", idempotencyKey: "req-1" } as const;
    const error = await session.accept(request).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(OperationError);
    expect(error).toMatchObject({ sessionId: "s", cause: expect.any(StoreUnavailable) });
    expect(String(error)).toContain("accept");
    expect(fault.struck).toHaveLength(6);
    expect(await session.input("i-1")).toBeUndefined();
    expect(await world.rows()).toEqual(before);
    expect((await session.snapshot()).inputs).toEqual({ admitted: 0, unfinished: 0 });

    expect(await session.accept(request)).toMatchObject({ outcome: "accepted", inputId: "i-1" });
    expect((await session.input("i-1"))?.phase).toBe("queued");
  });

  it("a lost acknowledgement is settled by the evidence: the input is accepted once", async () => {
    const { world, session } = await openSession();
    world.store.inject({ on: "commit", fault: "unavailableAfter" });
    const admission = await acceptPrompt(session, "hello", "req-1");
    world.store.requireStruck();
    expect(await world.rows("session", "s", "input")).toHaveLength(1);
    expect(world.store.counts.commit).toBe(2);
    expect((await session.input(admission.inputId))?.phase).toBe("queued");
    expect(await world.audit()).toEqual([]);
  });

  it("evidence that cannot be read leaves the session to a restart, which knows the input", async () => {
    const { world, supervisor, session } = await openSession();
    world.store.inject({ on: "commit", fault: "unavailableAfter" });
    world.store.inject({
      on: "load",
      fault: "unavailableBefore",
      when: (call) => call.keys[0]?.[0] === "journal",
      times: 6,
    });
    const request = { kind: "prompt", text: "hello", idempotencyKey: "req-1" } as const;
    await expect(session.accept(request)).rejects.toThrow(OperationError);
    world.store.requireStruck();
    expect(await session.accept(request)).toMatchObject({ outcome: "deduplicated" });
    expect(await world.rows("session", "s", "input")).toHaveLength(1);
    await supervisor.close();
  });

  it("the same key with another payload is refused and names the input that has it", async () => {
    const { world, session } = await openSession();
    const first = await acceptPrompt(session, "hello", "req-1");
    const before = await world.rows();
    const error = await session
      .accept({ kind: "prompt", text: "good-bye", idempotencyKey: "req-1" })
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(IdempotencyConflictError);
    expect(error).toMatchObject({ existingId: first.inputId, idempotencyKey: "req-1" });
    expect(await world.rows()).toEqual(before);
  });

  it("fields of a payload in another order are the same payload", async () => {
    const { session } = await openSession();
    const event = { kind: "externalEvent", eventType: "paid", idempotencyKey: "e-1" } as const;
    await session.accept({ ...event, payload: { a: 1, b: { c: 2, d: 3 } } });
    const again = await session.accept({ ...event, payload: { b: { d: 3, c: 2 }, a: 1 } });
    expect(again.outcome).toBe("deduplicated");
  });

  it("an id that the caller chose is taken once, and refused for another payload", async () => {
    const { session } = await openSession();
    await session.accept({ kind: "prompt", text: "hello", id: "i-1" });
    const again = await session.accept({ kind: "prompt", text: "hello", id: "i-1" });
    expect(again).toMatchObject({ outcome: "deduplicated", existingId: "i-1" });
    await expect(session.accept({ kind: "prompt", text: "other", id: "i-1" })).rejects.toThrow(
      /"i-1"/,
    );
  });

  it("a duplicate of a finished input gets its stored completion, in a later process too", async () => {
    const world = new World();
    const first = await world.open();
    const session = await first.sessions.open("s", { executor: echoExecutor() });
    const admission = await acceptPrompt(session, "hello", "req-1");
    expect(await admission.completion).toEqual({ type: "completed", result: ["hello"] });
    await first.close();

    const second = await world.open();
    const reopened = await second.sessions.open("s", { executor: new ScriptedExecutor() });
    const again = await reopened.accept({ kind: "prompt", text: "hello", idempotencyKey: "req-1" });
    expect(again).toMatchObject({ outcome: "deduplicated", state: "consumed" });
    if (again.outcome !== "deduplicated") throw new Error("unreachable");
    expect(await again.completion).toEqual({ type: "completed", result: ["hello"] });
    await second.close();
  });

  it("a duplicate of a waiting input joins its completion", async () => {
    const { supervisor, session } = await openSession();
    const executor = new ScriptedExecutor();
    const first = await acceptPrompt(session, "hello", "req-1");
    const again = await session.accept({ kind: "prompt", text: "hello", idempotencyKey: "req-1" });
    if (again.outcome !== "deduplicated") throw new Error(`found ${again.outcome}`);
    await supervisor.sessions.open("s", { executor });
    (await executor.next()).resolve({ result: 42 });
    expect(await first.completion).toEqual({ type: "completed", result: 42 });
    expect(await again.completion).toEqual({ type: "completed", result: 42 });
    await supervisor.close();
  });

  it("one more input than the queue may hold is a CapacityError, and room is taken again", async () => {
    const world = new World({ limits: { queueInputsMax: 2 } });
    const { supervisor, session } = await openSession(world);
    await acceptPrompt(session, "one");
    await acceptPrompt(session, "two", "k");
    const error = await session
      .accept({ kind: "prompt", text: "three" })
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(CapacityError);
    expect(error).toMatchObject({ limit: "queueInputsMax", limitValue: 2 });
    // A duplicate needs no room.
    const again = await session.accept({ kind: "prompt", text: "two", idempotencyKey: "k" });
    expect(again.outcome).toBe("deduplicated");
    await supervisor.sessions.open("s", { executor: echoExecutor() });
    await session.completion(again.inputId).catch(() => undefined);
    if (again.outcome === "deduplicated") await again.completion;
    expect((await session.accept({ kind: "prompt", text: "three" })).outcome).toBe("accepted");
    await supervisor.close();
  });

  it("many inputs at once are taken in the order of asking, each under its own sequence", async () => {
    const { world, session } = await openSession();
    const texts = Array.from({ length: 200 }, (_, index) => `prompt ${index}`);
    const admissions = await Promise.all(texts.map((text) => acceptPrompt(session, text)));
    const rows = await world.rows("session", "s", "input");
    expect(rows.map(({ value }) => (value as { id: string }).id)).toEqual(
      admissions.map(({ inputId }) => inputId),
    );
    expect(await world.audit()).toEqual([]);
  });

  it("keys of finished inputs leave by number, oldest first; keys of waiting ones stay", async () => {
    const world = new World({ limits: { endedKeysMax: 3 } });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
    for (let index = 0; index < 6; index += 1) {
      await (await acceptPrompt(session, "x", `k-${index}`)).completion;
    }
    const kept = (await world.rows("session", "s", "key")).map(({ key }) => key[3]);
    expect(kept).toEqual(["k-3", "k-4", "k-5"]);
    expect(
      (await session.accept({ kind: "prompt", text: "y", idempotencyKey: "k-0" })).outcome,
    ).toBe("accepted");
    expect(
      (await session.accept({ kind: "prompt", text: "x", idempotencyKey: "k-5" })).outcome,
    ).toBe("deduplicated");
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("the key of a finished input is free again after its time, and the audit stays clean", async () => {
    const world = new World({ clock: "held", limits: { endedKeyAgeMaxMs: 1_000, idleMs: 1e9 } });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { executor: echoExecutor() });
    await (await acceptPrompt(session, "x", "k")).completion;
    await world.clock.advance(1_000);
    expect((await session.accept({ kind: "prompt", text: "x", idempotencyKey: "k" })).outcome).toBe(
      "deduplicated",
    );
    await world.clock.advance(1);
    const again = await acceptPrompt(session, "x", "k");
    await again.completion;
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
    expect(await world.rows("session", "s", "input")).toHaveLength(2);
  });

  it("a call that its caller gave up before its turn came writes nothing", async () => {
    const { world, session } = await openSession();
    const before = await world.rows();
    const signal = AbortSignal.abort();
    await expect(session.accept({ kind: "prompt", text: "x" }, { signal })).rejects.toThrow();
    expect(await world.rows()).toEqual(before);
  });

  it("a session that was never opened answers as one that is not there", async () => {
    const { supervisor } = await openSession();
    const elsewhere = await supervisor.sessions.get("s");
    expect((await elsewhere.accept({ kind: "prompt", text: "x" })).outcome).toBe("accepted");
    await expect(supervisor.sessions.get("never")).rejects.toThrow(/"never"/);
    await supervisor.close();
    await expect(elsewhere.accept({ kind: "prompt", text: "x" })).rejects.toMatchObject({
      code: "HOLDFAST_CLOSED",
    });
  });

  it("a stored session that nobody opened takes no input", async () => {
    const { world, supervisor } = await openSession();
    await supervisor.close();
    const second = await world.open();
    const handle = await second.sessions.get("s");
    const error = await handle.accept({ kind: "prompt", text: "x" }).catch((cause) => cause);
    expect(error).toBeInstanceOf(NotReadyError);
    expect(error).toMatchObject({ state: "destroyed" });
    await second.close();
  });
});

describe("inputs that are refused for what they are", () => {
  const rejected: readonly (readonly [string, InputRequest])[] = [
    [
      "derived durability from an operator",
      { kind: "continuation", reason: "r", durability: "derived" },
    ],
    [
      "derived durability from a peer",
      {
        kind: "continuation",
        reason: "r",
        durability: "derived",
        origin: { type: "peer", peerId: "p" },
      },
    ],
    [
      "derived durability from outside",
      {
        kind: "externalEvent",
        eventType: "e",
        payload: 1,
        durability: "derived",
        origin: { type: "external", source: "s" },
      },
    ],
    [
      "a derived prompt",
      { kind: "prompt", text: "x", durability: "derived", origin: { type: "system" } },
    ],
    [
      "a derived flow step",
      {
        kind: "flowStep",
        stepId: "a",
        instructions: "x",
        durability: "derived",
        origin: { type: "system" },
      },
    ],
    [
      "a derived peer message",
      { kind: "peer", body: "x", durability: "derived", origin: { type: "system" } },
    ],
    [
      "a derived peer request",
      {
        kind: "peer",
        body: "x",
        convention: { type: "request", requestId: "r", intent: "i" },
        durability: "derived",
        origin: { type: "system" },
      },
    ],
    [
      "a handling mode on a progress report",
      {
        kind: "peer",
        body: "x",
        convention: { type: "responseProgress", requestId: "r", phase: "p" },
        handling: "steer",
      },
    ],
    [
      "a terminal response without a peer",
      {
        kind: "peer",
        body: "x",
        convention: { type: "responseTerminal", requestId: "r", status: "ok" },
      },
    ],
    [
      "a terminal response of a peer without a display identity",
      {
        kind: "peer",
        body: "x",
        convention: { type: "responseTerminal", requestId: "r", status: "ok" },
        origin: { type: "peer", peerId: "p" },
      },
    ],
  ];
  for (const [title, request] of rejected) {
    it(`${title} is rejected with a reason, and nothing is written`, async () => {
      const { world, session } = await openSession();
      const before = await world.rows();
      const admission = await session.accept({ ...request, idempotencyKey: "k" });
      expect(admission).toMatchObject({ outcome: "rejected", reason: expect.stringMatching(/\w/) });
      expect(await world.rows()).toEqual(before);
    });
  }

  it("the reason to reject comes before idempotency", async () => {
    const { session } = await openSession();
    await acceptPrompt(session, "hello", "k");
    const admission = await session.accept({
      kind: "prompt",
      text: "hello",
      idempotencyKey: "k",
      durability: "derived",
    });
    expect(admission.outcome).toBe("rejected");
  });

  it("an operation is consumed as it is accepted, without a turn", async () => {
    const { world, session } = await openSession();
    const admission = await session.accept({
      kind: "operation",
      operationId: "o",
      event: { a: 1 },
    });
    expect(admission).toMatchObject({ outcome: "accepted", state: "consumed" });
    if (admission.outcome !== "accepted") throw new Error("unreachable");
    expect(await admission.completion).toEqual({ type: "completedWithoutResult" });
    expect((await session.input(admission.inputId))?.outcome).toEqual({ type: "consumed" });
    expect(await world.rows("active-session")).toEqual([]);
    expect(await world.audit()).toEqual([]);
  });
});

describe("inputs that are no inputs", () => {
  const long = "é".repeat(257);
  const bad: readonly (readonly [string, unknown, string])[] = [
    ["nothing", undefined, ""],
    ["a text", "hello", ""],
    ["no kind", { text: "x" }, "/kind"],
    ["an unknown kind", { kind: "shout", text: "x" }, "/kind"],
    ["a missing text", { kind: "prompt" }, "/text"],
    ["a text that is a number", { kind: "prompt", text: 1 }, "/text"],
    ["a lone surrogate in the text", { kind: "prompt", text: "\ud800" }, "/text"],
    ["an empty id", { kind: "prompt", text: "x", id: "" }, "/id"],
    ["an id of 514 bytes", { kind: "prompt", text: "x", id: long }, "/id"],
    ["a lone surrogate in the id", { kind: "prompt", text: "x", id: "\udc00" }, "/id"],
    ["an empty key", { kind: "prompt", text: "x", idempotencyKey: "" }, "/idempotencyKey"],
    [
      "a key that is too long",
      { kind: "prompt", text: "x", idempotencyKey: long },
      "/idempotencyKey",
    ],
    ["a misspelt field", { kind: "prompt", text: "x", idempotencykey: "k" }, "/idempotencykey"],
    [
      "a field named like a prototype's",
      JSON.parse('{"kind":"prompt","text":"x","__proto__":1}'),
      "/__proto__",
    ],
    ["a time that is none", { kind: "prompt", text: "x", timestamp: "yesterday" }, "/timestamp"],
    [
      "an origin without its fields",
      { kind: "prompt", text: "x", origin: { type: "peer" } },
      "/origin/peerId",
    ],
    [
      "a payload that is not JSON",
      { kind: "externalEvent", eventType: "e", payload: { a: Number.NaN } },
      "/payload/a",
    ],
    [
      "a payload with a Map",
      { kind: "externalEvent", eventType: "e", payload: new Map() },
      "/payload",
    ],
  ];
  for (const [title, request, path] of bad) {
    it(`${title} is refused at ${path === "" ? "the top" : path}, and nothing is written`, async () => {
      const { world, session } = await openSession();
      const before = await world.rows();
      const error = await session.accept(request as InputRequest).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(ValidationError);
      expect((error as ValidationError).issues.map((issue) => issue.path)).toContain(path);
      expect(await world.rows()).toEqual(before);
    });
  }

  it("an unknown field is named on one line, whatever its name does to a terminal", async () => {
    const { session } = await openSession();
    const name = `\u001b[2J\n${"x".repeat(72)}\u{1f600}${"y".repeat(10_000)}`;
    const request = { kind: "prompt", text: "x", [name]: 1 } as unknown as InputRequest;
    const error = (await session.accept(request).catch((cause) => cause)) as ValidationError;
    expect(error).toBeInstanceOf(ValidationError);
    expect(error.message).not.toMatch(/\p{Cc}/u);
    expect(error.message.length).toBeLessThan(1_000);
    expect(error.message.isWellFormed()).toBe(true);
    expect(error.issues[0]?.path.isWellFormed()).toBe(true);
  });

  it("every fault of an input is named, not the first alone", async () => {
    const { session } = await openSession();
    const error = await session
      .accept({ kind: "prompt", id: "", idempotencyKey: "" } as unknown as InputRequest)
      .catch((cause: unknown) => cause);
    expect((error as ValidationError).issues.map((issue) => issue.path).sort()).toEqual([
      "/id",
      "/idempotencyKey",
      "/text",
    ]);
  });

  it("a payload over the limit is refused with its size, and not echoed", async () => {
    const { session } = await openSession(new World({ limits: { payloadBytesMax: 100 } }));
    const text = "secret".repeat(30);
    const error = await session.accept({ kind: "prompt", text }).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ValidationError);
    expect(String(error)).toContain("payloadBytesMax");
    expect(String(error)).not.toContain("secret");
  });

  it("hostile ids are data: sessions and inputs of such names live side by side", async () => {
    const world = new World();
    const supervisor = await world.open();
    const ids = [
      "a",
      "a/b",
      "a:b",
      "a\u0000b",
      "a\u0001b",
      "~",
      "../a",
      "A",
      "\u00e5",
      "a\u030a",
      "😀",
      "__proto__",
      "x".repeat(512),
    ];
    for (const id of ids) {
      const session = await supervisor.sessions.open(id, { executor: echoExecutor() });
      const admission = await session.accept({ kind: "prompt", text: id, id, idempotencyKey: id });
      if (admission.outcome !== "accepted") throw new Error(`found ${admission.outcome}`);
      expect(await admission.completion).toEqual({ type: "completed", result: [id] });
      expect((await session.input(id))?.payload).toMatchObject({ text: id });
      expect(await session.inputs()).toMatchObject({ items: [{ inputId: id }] });
    }
    const listed: string[] = [];
    let after: string | undefined;
    do {
      const page = await supervisor.sessions.list({ limit: 3, ...(after && { after }) });
      listed.push(...page.items.map((item) => item.id));
      after = page.next;
    } while (after !== undefined);
    expect([...listed].sort()).toEqual([...ids].sort());
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("session ids that are no ids are refused", async () => {
    const supervisor = await new World().open();
    for (const id of ["", "\ud800", "x".repeat(513)]) {
      await expect(supervisor.sessions.open(id)).rejects.toThrow(ValidationError);
    }
    await supervisor.close();
  });

  it("what the caller changes after the call does not reach the store", async () => {
    const { session } = await openSession();
    const payload = { amount: 1 };
    const pending = session.accept({ kind: "externalEvent", eventType: "e", payload, id: "i" });
    payload.amount = 1_000_000;
    await pending;
    expect((await session.input("i"))?.payload).toMatchObject({ payload: { amount: 1 } });
  });
});

it("an admitted input's index rows lead to it", async () => {
  const { world, session } = await openSession();
  const { inputId } = await acceptPrompt(session, "x", "k");
  expect((await world.inner.load(keys.inputId("s", inputId)))?.value).toEqual({ sequence: 0 });
  expect((await world.inner.load(keys.idempotency("s", "k")))?.value).toMatchObject({
    inputId,
    sequence: 0,
  });
});
