/** Every error class: what it carries, what it says, and what it never says. */
import { describe, expect, it } from "vitest";
import * as errors from "../src/errors.js";
import { HoldfastError, isHoldfastError, StoreError, show } from "../src/errors.js";
import { showKey } from "../src/store/keys.js";
import { readPage, tableRows } from "./docs/page.js";
import { acceptPrompt, World } from "./world.js";

interface Sample {
  readonly error: HoldfastError;
  readonly code: string;
  readonly retryable: boolean;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

const cause = new Error("the cause");

/** One of each class, by its name. */
const samples: Readonly<Record<string, Sample>> = {
  ValidationError: {
    error: new errors.ValidationError("input", [
      { path: "/kind", found: "missing", expected: "a string" },
      { path: "", found: "null", expected: "an object" },
    ]),
    code: "HOLDFAST_VALIDATION",
    retryable: false,
    fields: { subject: "input", issues: [{ path: "/kind" }, { path: "" }] },
    message:
      "The input is not valid: /kind is missing, expected a string; value is null, expected an object.",
  },
  ClosedError: {
    error: new errors.ClosedError("supervisor", cause),
    code: "HOLDFAST_CLOSED",
    retryable: false,
    fields: { subject: "supervisor", cause },
    message: "The supervisor is closed. Open it again before use.",
  },
  NotFoundError: {
    error: new errors.NotFoundError("input", "i-1"),
    code: "HOLDFAST_NOT_FOUND",
    retryable: false,
    fields: { kind: "input", id: "i-1" },
    message: 'No input "i-1" exists in this store. Check the id, or list what exists.',
  },
  ConflictError: {
    error: new errors.ConflictError("input", "i-1", "this id was already taken", cause),
    code: "HOLDFAST_CONFLICT",
    retryable: false,
    fields: { subject: "input", id: "i-1", cause },
    message: 'The input "i-1" cannot be changed: this id was already taken.',
  },
  BusyError: {
    error: new errors.BusyError("session page", 8, cause),
    code: "HOLDFAST_BUSY",
    retryable: true,
    fields: { subject: "session page", tries: 8, cause },
    message: "The session page changed during each of 8 reads. Try again.",
  },
  NotReadyError: {
    error: new errors.NotReadyError("s-1", "running", "recycle"),
    code: "HOLDFAST_NOT_READY",
    retryable: false,
    fields: { sessionId: "s-1", state: "running", operation: "recycle" },
    message:
      'Session "s-1" cannot recycle while it is running. Wait for its turn to end, or cancel it.',
  },
  DestroyedError: {
    error: new errors.DestroyedError("s-1", "retire"),
    code: "HOLDFAST_DESTROYED",
    retryable: false,
    fields: { sessionId: "s-1", operation: "retire" },
    message: 'Session "s-1" was destroyed and cannot retire. Use a session with another id.',
  },
  IdempotencyConflictError: {
    error: new errors.IdempotencyConflictError("s-1", "k-1", "i-1"),
    code: "HOLDFAST_IDEMPOTENCY_CONFLICT",
    retryable: false,
    fields: { sessionId: "s-1", idempotencyKey: "k-1", existingId: "i-1" },
    message:
      'Session "s-1" already took idempotency key "k-1" with another payload, as "i-1". Use a new key for what is new.',
  },
  CapacityError: {
    error: new errors.CapacityError("s-1", "queueInputsMax", 4_096),
    code: "HOLDFAST_CAPACITY",
    retryable: true,
    fields: { sessionId: "s-1", limit: "queueInputsMax", limitValue: 4_096 },
    message:
      'Session "s-1" already holds 4096 unfinished inputs. Wait for one to end, or raise limits.queueInputsMax.',
  },
  CorruptionError: {
    error: new errors.CorruptionError("Record session/s-1", "the ledger is missing"),
    code: "HOLDFAST_CORRUPTION",
    retryable: false,
    fields: {
      where: "Record session/s-1",
      found: "the ledger is missing",
      advice: "Keep a copy of the data, then run `holdfast store verify`.",
    },
    message:
      "Record session/s-1: the ledger is missing. Keep a copy of the data, then run `holdfast store verify`.",
  },
  SessionIdMismatchError: {
    error: new errors.SessionIdMismatchError("s-1", "s-2"),
    code: "HOLDFAST_SESSION_ID_MISMATCH",
    retryable: false,
    fields: { expected: "s-1", actual: "s-2" },
    message:
      'The session service answered with session "s-2" where "s-1" was prepared. Create the session under the prepared id.',
  },
  TransitionError: {
    error: new errors.TransitionError("session/s-1", "retired", "accept", "illegalTransition"),
    code: "HOLDFAST_TRANSITION",
    retryable: false,
    fields: {
      actor: "session/s-1",
      state: "retired",
      event: "accept",
      reason: "illegalTransition",
    },
    message:
      'Actor "session/s-1" in state retired refuses the event "accept": no transition is defined for it.',
  },
  OperationError: {
    error: new errors.OperationError("retire", "s-1", new errors.StoreConflict("k", "has moved")),
    code: "HOLDFAST_OPERATION",
    retryable: true,
    fields: { operation: "retire", sessionId: "s-1", cause: { _tag: "StoreConflict" } },
    message:
      'Session "s-1" could not retire: The store refused a commit: k has moved. Begin a new transaction.',
  },
  ExecutorError: {
    error: new errors.ExecutorError('program "cat" exited with code 1', { exitCode: 1 }, cause),
    code: "HOLDFAST_EXECUTOR",
    retryable: false,
    fields: { reason: 'program "cat" exited with code 1', details: { exitCode: 1 }, cause },
    message: 'The executor failed: program "cat" exited with code 1.',
  },
  StoreUnavailable: {
    error: new errors.StoreUnavailable("commit", "the disk is full", cause),
    code: "HOLDFAST_STORE_UNAVAILABLE",
    retryable: true,
    fields: { operation: "commit", reason: "the disk is full", cause },
    message: "The store could not commit: the disk is full.",
  },
  StoreConflict: {
    error: new errors.StoreConflict("session/s-1", "has moved since it was read or expected"),
    code: "HOLDFAST_STORE_CONFLICT",
    retryable: true,
    fields: { key: "session/s-1", reason: "has moved since it was read or expected" },
    message:
      "The store refused a commit: session/s-1 has moved since it was read or expected. Begin a new transaction.",
  },
  StoreFenced: {
    error: new errors.StoreFenced("session/s-1", 1, 2),
    code: "HOLDFAST_STORE_FENCED",
    retryable: false,
    fields: { owner: "session/s-1", epoch: 1, currentEpoch: 2 },
    message:
      "The lease on session/s-1 with epoch 1 is over, epoch 2 holds it. Stop writing for this owner.",
  },
  StoreSerialization: {
    error: new errors.StoreSerialization("session/s-1", "its envelope is not complete", cause),
    code: "HOLDFAST_STORE_SERIALIZATION",
    retryable: false,
    fields: { key: "session/s-1", reason: "its envelope is not complete", cause },
    message:
      "The record session/s-1 is unreadable: its envelope is not complete. Run `holdfast store verify`.",
  },
  StoreLocked: {
    error: new errors.StoreLocked("/data", "process 7", cause),
    code: "HOLDFAST_STORE_LOCKED",
    retryable: true,
    fields: { path: "/data", holder: "process 7", cause },
    message:
      "The store at /data is in use by process 7. Stop that process or use another directory; do not delete the LOCK file, it protects the data.",
  },
  AssertionError: {
    error: new errors.AssertionError("a plan writes its own proof"),
    code: "HOLDFAST_ASSERTION",
    retryable: false,
    fields: { what: "a plan writes its own proof" },
    message:
      "An internal promise does not hold: a plan writes its own proof. Please report this as a bug.",
  },
};

const named = Object.entries(samples);

/** The classes of `src/errors.ts` that can be raised: all but the two bases. */
const classNames = Object.entries(errors)
  .filter(([, value]) => typeof value === "function" && value.prototype instanceof HoldfastError)
  .map(([name]) => name)
  .filter((name) => name !== StoreError.name);

describe("the set of errors", () => {
  it("has a sample here for each class", () => {
    expect(Object.keys(samples).sort()).toEqual([...classNames].sort());
  });

  it("has a code of its own for each class", () => {
    const codes = named.map(([, { error }]) => error.code);
    expect(new Set(codes).size).toBe(codes.length);
  });

  it("has exactly five store errors", () => {
    const tags = named.filter(([, { error }]) => error instanceof StoreError).map(([tag]) => tag);
    expect(tags).toEqual([
      "StoreUnavailable",
      "StoreConflict",
      "StoreFenced",
      "StoreSerialization",
      "StoreLocked",
    ]);
  });

  it("is described by docs/errors.md, class by class", () => {
    const rows = tableRows(readPage("errors.md"), "tag").map((row) => row.slice(0, 3));
    expect(rows).toEqual(
      named.map(([tag, { code, retryable }]) => [
        `\`${tag}\``,
        `\`${code}\``,
        tag === "OperationError" ? "as cause" : retryable ? "yes" : "no",
      ]),
    );
  });

  it("is named by docs/errors.md with no code that is not there", () => {
    const found = new Set(readPage("errors.md").match(/HOLDFAST_\w+/g));
    expect([...found].sort()).toEqual(named.map(([, { code }]) => code).sort());
  });
});

describe.each(named)("%s", (tag, { error, code, retryable, fields, message }) => {
  it("carries tag, code, name, retryable and its fields", () => {
    expect(error).toBeInstanceOf(HoldfastError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ _tag: tag, name: tag, code, retryable, ...fields });
  });

  it("has a cause exactly where one was given", () => {
    expect(Object.hasOwn(error, "cause")).toBe("cause" in fields);
  });

  it("says what, where and what to do", () => {
    expect(error.message).toBe(message);
  });

  it("is recognised by its code, also from another copy of the package", () => {
    expect(isHoldfastError(error)).toBe(true);
    expect(isHoldfastError(Object.assign(new Error("copy"), { code }))).toBe(true);
  });
});

describe("what is no error of ours", () => {
  it.each([
    ["a plain error", new Error("x")],
    ["an error of the system", Object.assign(new Error("x"), { code: "ENOENT" })],
    ["an error with a number as code", Object.assign(new Error("x"), { code: 7 })],
    ["an object with a code of ours", { code: "HOLDFAST_CLOSED" }],
    ["nothing", undefined],
  ])("%s is not recognised", (_, value) => {
    expect(isHoldfastError(value)).toBe(false);
  });
});

describe("advice that depends on the fields", () => {
  it("is to open the session again where no turn is in the way", () => {
    expect(new errors.NotReadyError("s", "stopped", "retire").message).toBe(
      'Session "s" cannot retire while it is stopped. Open the session again before use.',
    );
  });

  it("is to reset a session that is retired: opening it again would not help", () => {
    expect(new errors.NotReadyError("s", "retired", "accept an input").message).toBe(
      'Session "s" cannot accept an input while it is retired. Reset it to take new inputs.',
    );
  });

  it("is not to try an operation again whose cause stays", () => {
    const of = (cause: unknown) => new errors.OperationError("retire", "s", cause).retryable;
    expect(of(new errors.StoreUnavailable("commit", "the disk is full"))).toBe(true);
    expect(of(new errors.StoreFenced("session/s", 1, 2))).toBe(false);
    expect(of(new errors.StoreSerialization("session/s", "it is not JSON"))).toBe(false);
    expect(of("down")).toBe(false);
  });

  it("names why a chart refuses", () => {
    const of = (reason: errors.RefusalReason) =>
      new errors.TransitionError("a", "s", "e", reason).message.split(": ")[1];
    expect([of("terminalState"), of("guardFailed"), of("illegalTransition")]).toEqual([
      "the state is final.",
      "its condition does not hold.",
      "no transition is defined for it.",
    ]);
  });

  it("takes a cause that is no error as its text", () => {
    expect(new errors.OperationError("retire", "s", "down").message).toBe(
      'Session "s" could not retire: down',
    );
  });
});

/** Ids that would break a line of a log, steer a terminal, or fill it. */
const hostileIds: Readonly<Record<string, string>> = {
  "all C0 and C1 controls": String.fromCharCode(
    ...Array.from({ length: 0x20 }, (_, code) => code),
    ...Array.from({ length: 0x21 }, (_, code) => code + 0x7f),
  ),
  "the end of a message": 'x". Everything is fine. "',
  "line and paragraph separators": "a\u2028b\u2029c",
  "a terminal sequence": "\u001b[2J\u001b]0;title\u0007",
  "10,000 characters": "x".repeat(10_000),
  "10,000 astral characters": "\u{1f600}".repeat(10_000),
  "10,000 controls": "\u0000".repeat(10_000),
  "a lone surrogate": "a\ud800",
};

const CONTROL = /[\p{Cc}\u2028\u2029]/u;

/** Every error that takes ids, made with one and the same id everywhere. */
function errorsAbout(id: string): readonly HoldfastError[] {
  const key = showKey(["session", id, "input", id]);
  return [
    new errors.ValidationError("input", [
      { path: `/metadata/${id}`, found: "unknown", expected: "text" },
    ]),
    new errors.NotFoundError("input", id),
    new errors.ConflictError("input", id, "it moved"),
    new errors.NotReadyError(id, "retired", "accept an input"),
    new errors.DestroyedError(id, "accept an input"),
    new errors.IdempotencyConflictError(id, id, id),
    new errors.CapacityError(id, "queueInputsMax", 1),
    new errors.SessionIdMismatchError(id, id),
    new errors.TransitionError(id, "queued", id, "guardFailed"),
    new errors.OperationError("retire", id, new errors.StoreConflict(key, "has moved")),
    // These take text that is ready to be shown; keys come to them by way of showKey.
    new errors.CorruptionError(`Record ${key}`, "it is not there"),
    new errors.StoreConflict(key, "has moved"),
    new errors.StoreFenced(key, 1, 2),
    new errors.StoreSerialization(key, "it is not JSON"),
  ];
}

describe.each(Object.entries(hostileIds))("an id of %s", (_, id) => {
  it("is shown on one line, escaped and shortened", () => {
    for (const { _tag, message } of errorsAbout(id)) {
      expect(message, _tag).not.toMatch(CONTROL);
      expect(message.isWellFormed(), _tag).toBe(true);
      expect(message.length, _tag).toBeLessThan(2_000);
    }
  });

  it("stands whole in the fields", () => {
    expect(new errors.NotFoundError("input", id).id).toBe(id);
    expect(new errors.IdempotencyConflictError(id, id, id)).toMatchObject({
      sessionId: id,
      idempotencyKey: id,
      existingId: id,
    });
  });

  it("is quoted in a way that JSON reads back, up to where it is cut", () => {
    const text: string = JSON.parse(show(id));
    const isCut = id.length > 80;
    expect(text).toBe(isCut ? `${id.slice(0, 77)}...` : id);
  });
});

describe("payloads", () => {
  const secret = "the-secret-of-the-caller";
  const bad: Readonly<Record<string, unknown>> = {
    "of an unknown kind": { kind: secret, text: secret },
    "with a field of the wrong type": { kind: "prompt", text: [secret] },
    "with a bad handling": { kind: "prompt", text: "x", handling: secret },
    "with a bad origin": { kind: "prompt", text: "x", origin: { type: secret } },
    "with a bad instant": { kind: "prompt", text: "x", timestamp: secret },
    "with a value that is no JSON": {
      kind: "externalEvent",
      eventType: "e",
      payload: { a: secret, b: new Map([[secret, secret]]) },
    },
    "with a lone surrogate": { kind: "prompt", text: `${secret}\ud800` },
    "that is too large": { kind: "prompt", text: secret.repeat(20_000) },
    "that is no object": secret,
  };

  it.each(Object.entries(bad))("an input %s is refused without its text", async (_, request) => {
    const supervisor = await new World().open();
    const session = await supervisor.sessions.open("s");
    const error = await session.accept(request as never).catch((fault: unknown) => fault);
    expect(error).toBeInstanceOf(errors.ValidationError);
    expect(JSON.stringify(error) + String(error)).not.toContain(secret);
  });

  it("no error of an admission holds the text of its input", async () => {
    const world = new World({ limits: { queueInputsMax: 1 } });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s");
    await acceptPrompt(session, `${secret} 1`, "k");
    const { inputId } = (await session.inputs()).items[0] ?? { inputId: "" };
    const failures: unknown[] = [];
    const tell = (error: unknown) => failures.push(error);
    const prompt = (rest: object) => session.accept({ kind: "prompt", text: secret, ...rest });
    await prompt({ idempotencyKey: "k" }).catch(tell);
    await prompt({ id: inputId }).catch(tell);
    await prompt({}).catch(tell);
    await session.reset();
    world.store.inject({ on: "commit", fault: "unavailableBefore", times: 6 });
    await prompt({}).catch(tell);
    await session.retire();
    await prompt({}).catch(tell);
    await session.destroy();
    await prompt({}).catch(tell);
    expect(failures.map((error) => (error as HoldfastError)._tag)).toEqual([
      "IdempotencyConflictError",
      "ConflictError",
      "CapacityError",
      "OperationError",
      "NotReadyError",
      "DestroyedError",
    ]);
    for (const error of failures) {
      const { cause: inner, ...fields } = error as HoldfastError;
      expect(`${error} ${inner} ${JSON.stringify(fields)}`).not.toContain(secret);
    }
  });
});

describe("assert", () => {
  it("passes what holds, and names what does not", () => {
    expect(() => errors.assert(1, "one is true")).not.toThrow();
    expect(() => errors.assert(0, "zero is true")).toThrow(errors.AssertionError);
  });
});
