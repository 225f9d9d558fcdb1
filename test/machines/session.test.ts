import { describe, expect, it } from "vitest";
import { type SessionEvent, sessionMachine } from "../../machines/index.js";
import { describeChart } from "./describe-chart.js";
import { sessionRules } from "./session.rules.js";
import { walk } from "./walk.js";

describeChart(sessionRules);

function session(...events: readonly SessionEvent[]) {
  return walk(sessionMachine, { sessionId: "session-1" }, [{ type: "register" }, ...events]);
}

const attach: SessionEvent = { type: "attach", generation: 1 };
const startTurn: SessionEvent = { type: "startTurn", turnId: "turn-1" };
const turnEnded: SessionEvent = { type: "turn.ended", turnId: "turn-1" };

describe("a turn returns the session to where it began", () => {
  it("attached, unless the executor was lost under the turn: then idle", () => {
    expect(session(attach, startTurn, turnEnded).last.value).toBe("attached");
    const lost: SessionEvent = { type: "executor.lost", generation: 1 };
    expect(session(attach, startTurn, lost, turnEnded).last.value).toBe("idle");
  });

  it("idle, unless an executor came under the turn: then attached", () => {
    expect(session(startTurn, turnEnded).last.value).toBe("idle");
    expect(session(startTurn, attach, turnEnded).last.value).toBe("attached");
  });

  it("retired, also when the session was retired while the turn ran", () => {
    const retire: SessionEvent = { type: "retire" };
    expect(session(attach, retire, startTurn, turnEnded).last.value).toBe("retired");
    const { last } = session(attach, startTurn, retire, turnEnded);
    expect(last.value).toBe("retired");
    expect(last.context.turnId).toBeNull();
  });
});

describe("a drain that is called off", () => {
  it("does not invent an executor: a retired session without one is idle after a reset", () => {
    const { last } = session(
      { type: "retire" },
      { type: "unregister" },
      { type: "resumeRegistration" },
      { type: "reset" },
    );
    expect(last.value).toBe("idle");
    expect(last.context.registration).toBe("queuing");
  });

  it("does not forget an executor, also when it was bound during the drain", () => {
    const { last } = session(startTurn, { type: "unregister" }, attach, turnEnded, {
      type: "resumeRegistration",
    });
    expect(last.value).toBe("attached");
    expect(last.context.registration).toBe("active");
  });

  it("wakes the loop: work that waited out the drain is looked at again", () => {
    for (const way of [[], [attach], [{ type: "retire" }], [attach, { type: "retire" }]] as const) {
      const { effects } = session(...way, { type: "unregister" }, { type: "resumeRegistration" });
      expect(effects.at(-1)).toEqual(["wakeLoop"]);
    }
  });
});

describe("unregistering", () => {
  it("waits for the turn that is still committing in a retired session", () => {
    const draining = [attach, startTurn, { type: "retire" }, { type: "unregister" }] as const;
    expect(() => session(...draining, { type: "unregistered" })).toThrow("is refused");
    const { last, effects } = session(...draining, turnEnded, { type: "unregistered" });
    expect(last.value).toBe("retired");
    expect(effects.at(-1)).toEqual(["stopExecutor", "releaseSession"]);
  });

  it("no turn begins once it has begun", () => {
    for (const way of [[], [attach], [{ type: "retire" }]] as const) {
      expect(() => session(...way, { type: "unregister" }, startTurn)).toThrow("is refused");
    }
  });

  it("stops the executor of a session that was reset during the drain", () => {
    const { last, effects } = session(
      attach,
      { type: "retire" },
      { type: "unregister" },
      { type: "reset" },
      { type: "unregistered" },
    );
    expect(effects.at(-1)).toEqual(["stopExecutor", "releaseSession"]);
    expect(last.value).toBe("idle");
  });
});
