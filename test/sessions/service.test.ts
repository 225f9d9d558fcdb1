import { describe, expect, it } from "vitest";
import {
  type Executor,
  functionExecutor,
  NotReadyError,
  PeerChannel,
  type RespondRequest,
  type Session,
  SessionIdMismatchError,
  type SessionService,
  StoredSessionService,
  type Supervisor,
  serviceExecutor,
  type TurnResult,
} from "../../src/index.js";
import { untilRest } from "../test-clock.js";
import { acceptPrompt, World } from "../world.js";

function serviceOf(
  supervisor: Supervisor,
  respond: (request: RespondRequest) => TurnResult | Promise<TurnResult> = ({ inputs }) => ({
    result: `heard ${inputs.length}`,
  }),
) {
  return new StoredSessionService({ sessions: supervisor.sessions, respond });
}

async function expectGone(session: Session) {
  const error = await session.accept({ kind: "prompt", text: "x" }).catch((cause) => cause);
  expect(error).toBeInstanceOf(NotReadyError);
  expect(error).toMatchObject({ state: "destroyed" });
}

describe("materialising a session", () => {
  it("S-001-01: with an invalid option answers with that error, and the id is not there", async () => {
    const world = new World();
    const supervisor = await world.open();
    await expect(
      supervisor.sessions.materialize({
        session: "s",
        service: serviceOf(supervisor),
        request: { maxInlinePeerNotifications: -2 },
      }),
    ).rejects.toThrow("-2 is invalid");
    await expectGone(await supervisor.sessions.get("s"));
    for (const max of [-1, 0, 1]) {
      const session = await supervisor.sessions.materialize({
        service: serviceOf(supervisor),
        request: { maxInlinePeerNotifications: max },
      });
      expect(session.state()).toBe("attached");
    }
    await supervisor.close();
  });

  it("S-001-02: a prompt completes with the executor's text; discarding and unregistering work", async () => {
    const world = new World();
    const supervisor = await world.open();
    const service = serviceOf(supervisor);
    const session = await supervisor.sessions.materialize({
      service,
      executor: (id) => functionExecutor(() => ({ result: `text of ${id}` })),
    });
    const { completion } = await acceptPrompt(session, "hello");
    expect(await completion).toEqual({ type: "completed", result: `text of ${session.id}` });
    await service.discard(session.id);
    await session.unregister();
    await expectGone(session);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("S-001-03: a service that answers with another id is refused with both", async () => {
    const world = new World();
    const supervisor = await world.open();
    let made = 0;
    const service: SessionService = {
      ...serviceOf(supervisor),
      create: async () => ({ sessionId: "another" }),
      runTurn: async () => ({}),
      interrupt: async () => {},
      discard: async () => {},
    };
    const error = await supervisor.sessions
      .materialize({
        session: "s",
        service,
        executor: () => {
          made += 1;
          return functionExecutor(() => ({}));
        },
      })
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(SessionIdMismatchError);
    expect(error).toMatchObject({ expected: "s", actual: "another" });
    expect(made).toBe(0);
    await expectGone(await supervisor.sessions.get("s"));
    await supervisor.close();
  });

  it("whose executor cannot be made lets the id go, and the error comes out unchanged", async () => {
    const supervisor = await new World().open();
    const failure = new Error("no model today");
    const outcome = supervisor.sessions.materialize({
      session: "s",
      service: serviceOf(supervisor),
      executor: () => {
        throw failure;
      },
    });
    await expect(outcome).rejects.toBe(failure);
    await expectGone(await supervisor.sessions.get("s"));
    await supervisor.close();
  });

  it("over a session that is open is refused, and leaves it alone", async () => {
    const supervisor = await new World().open();
    const open = await supervisor.sessions.open("s");
    await expect(
      supervisor.sessions.materialize({ session: "s", service: serviceOf(supervisor) }),
    ).rejects.toMatchObject({ code: "HOLDFAST_CONFLICT" });
    expect((await acceptPrompt(open, "x")).state).toBe("queued");
    await supervisor.close();
  });

  it("without an executor of its own does its turns through the service, and goes on after a restart", async () => {
    const world = new World();
    const supervisor = await world.open();
    const seen: unknown[] = [];
    const respond = ({ system, transcript, notifications }: RespondRequest) => {
      seen.push([system, transcript.messages, notifications.inline.length, notifications.withheld]);
      return { result: "ok", messages: [{ role: "assistant", content: "ok" }] };
    };
    const session = await supervisor.sessions.materialize({
      session: "s",
      service: serviceOf(supervisor, respond),
      request: { system: "be brief", maxInlinePeerNotifications: 1, metadata: { team: "blue" } },
    });
    await (await acceptPrompt(session, "one")).completion;
    expect((await session.snapshot()).metadata).toEqual({
      team: "blue",
      system: "be brief",
      maxInlinePeerNotifications: 1,
    });
    await supervisor.close();
    world.restart();

    const later = await world.open();
    const service = serviceOf(later, respond);
    const reopened = await later.sessions.open("s");
    const peers = ["a", "b"].map((body) => reopened.accept({ kind: "peer", body }));
    await Promise.all(peers);
    await later.sessions.open("s", {
      executor: serviceExecutor("s", { service, unregister: () => reopened.unregister() }),
    });
    await untilRest();
    expect(seen).toEqual([
      ["be brief", 0, 0, 0],
      ["be brief", 2, 1, 1],
    ]);
    await later.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("the executor over a session service", () => {
  it("S-001-05: stop of a second executor for the session succeeds and takes the session out", async () => {
    const world = new World();
    const supervisor = await world.open();
    const service = serviceOf(supervisor);
    const session = await supervisor.sessions.materialize({ session: "s", service });
    const second: Executor = serviceExecutor("s", {
      service,
      unregister: () => session.unregister(),
    });
    await second.stop?.();
    await expectGone(session);
    expect(service.isLive("s")).toBe(false);
    await supervisor.close();
  });

  it("stop unregisters even where discarding fails, and the failure is told", async () => {
    const supervisor = await new World().open();
    const session = await supervisor.sessions.open("s");
    const service: SessionService = {
      create: async () => ({ sessionId: "s" }),
      runTurn: async () => ({}),
      interrupt: async () => {},
      discard: async () => {
        throw new Error("cannot let go");
      },
    };
    const executor = serviceExecutor("s", { service, unregister: () => session.unregister() });
    await expect(executor.stop?.()).rejects.toThrow("cannot let go");
    await expectGone(session);
  });

  it("interrupting without a turn is an error; with one it aborts it", async () => {
    const world = new World();
    const supervisor = await world.open();
    let isAborted = false;
    const service = serviceOf(
      supervisor,
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            isAborted = true;
            reject(new Error("aborted"));
          });
        }),
    );
    const session = await supervisor.sessions.materialize({ session: "s", service });
    await expect(service.interrupt("s")).rejects.toBeInstanceOf(NotReadyError);
    const { completion } = await acceptPrompt(session, "hangs");
    await untilRest();
    await session.cancelTurn();
    expect(await completion).toEqual({ type: "cancelled" });
    await untilRest();
    expect(isAborted).toBe(true);
    await supervisor.close();
  });

  it("a restart of the session discards what is live and keeps it registered", async () => {
    const world = new World();
    const supervisor = await world.open();
    const service = serviceOf(supervisor);
    const session = await supervisor.sessions.materialize({ session: "s", service });
    world.store.inject({ on: "commit", fault: "conflict" });
    await session.accept({ kind: "prompt", text: "x" }).catch(() => undefined);
    await untilRest();
    const { completion } = await acceptPrompt(session, "again");
    expect(await completion).toMatchObject({ type: "completed" });
    await supervisor.close();
  });
});

describe("context that a host appends", () => {
  it("S-001-04: to a session that is only stored brings it to life, under a receipt of its own", async () => {
    const world = new World();
    const supervisor = await world.open();
    const service = serviceOf(supervisor);
    const session = await supervisor.sessions.materialize({ session: "s", service });
    await service.discard("s");
    await session.unregister();
    const stored = await supervisor.sessions.get("s");
    const request = { content: "The guest is a member.", idempotencyKey: "append-1" };
    const receipt = await stored.appendContext(request);
    expect(receipt.turnId).toHaveLength(36);
    expect(stored.state()).toBe("idle");
    expect(await stored.appendContext(request)).toEqual(receipt);
    expect((await stored.transcript()).items).toMatchObject([
      {
        turnId: receipt.turnId,
        receipt: null,
        messages: [{ role: "system", content: request.content }],
      },
    ]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });

  it("under a key that has other content is refused; to a session that does not exist as well", async () => {
    const supervisor = await new World().open();
    const session = await supervisor.sessions.open("s");
    const first = await session.appendContext({ content: "a", idempotencyKey: "k" });
    await expect(
      session.appendContext({ content: "b", idempotencyKey: "k" }),
    ).rejects.toMatchObject({
      code: "HOLDFAST_IDEMPOTENCY_CONFLICT",
      existingId: first.turnId,
    });
    await session.stop();
    await expect(session.appendContext({ content: "c" })).rejects.toMatchObject({
      code: "HOLDFAST_NOT_READY",
      state: "stopped",
    });
    await expect(session.appendContext({ content: "\ud800" })).rejects.toMatchObject({
      code: "HOLDFAST_VALIDATION",
    });
  });

  it("is part of the digest of the next receipt", async () => {
    const world = new World();
    const supervisor = await world.open();
    const service = serviceOf(supervisor);
    const session = await supervisor.sessions.materialize({ session: "s", service });
    await session.appendContext({ content: "a" });
    await (await acceptPrompt(session, "x")).completion;
    await session.appendContext({ content: "b" });
    await (await acceptPrompt(session, "y")).completion;
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});

describe("peers of one process", () => {
  it("S-001-07: over a shared channel with keep-alive a prompt still completes", async () => {
    const world = new World({ clock: "held", limits: { idleMs: 1_000 } });
    const supervisor = await world.open();
    const service = serviceOf(supervisor);
    const channel = new PeerChannel();
    const [a, b] = [
      await supervisor.sessions.materialize({ session: "a", service }),
      await supervisor.sessions.materialize({ session: "b", service }),
    ];
    channel.join("alice", a);
    channel.join("bob", b);
    channel.configure("bob", { keepAlive: true });
    const { completion } = await acceptPrompt(b, "hello");
    expect(await completion).toEqual({ type: "completed", result: "heard 1" });
    const sent = await channel.send({
      from: "alice",
      to: "bob",
      body: "hi",
      idempotencyKey: "m-1",
    });
    if (sent.outcome !== "accepted") throw new Error(`found ${sent.outcome}`);
    expect(await sent.completion).toMatchObject({ type: "completed" });
    expect((await b.input(sent.inputId))?.header.origin).toEqual({
      type: "peer",
      peerId: "alice",
      displayIdentity: "alice",
    });
    await world.clock.advance(10_000);
    expect([a.state(), b.state()]).toEqual(["destroyed", "attached"]);
    channel.configure("bob", { keepAlive: false });
    await world.clock.advance(10_000);
    expect(b.state()).toBe("destroyed");
    channel.leave("bob");
    await expect(channel.send({ from: "alice", to: "bob", body: "hi" })).rejects.toMatchObject({
      code: "HOLDFAST_NOT_FOUND",
    });
    await supervisor.close();
  });

  it("S-001-08: configuring the channel does not change what the metadata says", async () => {
    const world = new World({ clock: "held", limits: { idleMs: 1_000 } });
    const supervisor = await world.open();
    const service = serviceOf(supervisor);
    const session = await supervisor.sessions.materialize({
      session: "s",
      service,
      request: { keepAlive: true },
    });
    await world.clock.advance(10_000);
    expect(session.state()).toBe("attached");
    const channel = new PeerChannel();
    channel.join("s", session);
    channel.configure("s", { keepAlive: false });
    expect((await session.snapshot()).metadata).toEqual({ keepAlive: true });
    await world.clock.advance(10_000);
    expect(session.state()).toBe("destroyed");
    expect((await session.snapshot()).metadata).toEqual({ keepAlive: true });
    await supervisor.close();
  });
});
