import { describe, expect, it } from "vitest";
import { type SupervisorEvent, supervisorMachine } from "../../machines/index.js";
import { describeChart } from "./describe-chart.js";
import { supervisorRules } from "./supervisor.rules.js";
import { walk } from "./walk.js";

describeChart(supervisorRules);

const opened: readonly SupervisorEvent[] = [
  { type: "store.opened" },
  { type: "store.verified" },
  { type: "sessions.recovered" },
];

function reign(...events: readonly SupervisorEvent[]) {
  return walk(supervisorMachine, { supervisorId: "supervisor-1" }, [...opened, ...events]);
}

describe("closing a supervisor", () => {
  it("lets turns end in mode drain, and cuts them off when asked again with less patience", () => {
    const { last, effects } = reign(
      { type: "close", mode: "drain" },
      { type: "work.left" },
      { type: "close", mode: "cancel-and-drain" },
      { type: "work.joined" },
    );
    expect(effects.slice(opened.length)).toEqual([[], [], ["interruptTurns"], ["refuseCalls"]]);
    expect(last.value).toBe("closed");
    expect(last.context).toMatchObject({ mode: "cancel-and-drain", reason: null });
  });

  it("after a failure keeps the first cause", () => {
    const { last } = reign(
      { type: "fail", reason: "the store contradicts itself" },
      { type: "fail", reason: "the store is closed" },
      { type: "close", mode: "drain" },
      { type: "work.joined" },
    );
    expect(last.value).toBe("closed");
    expect(last.context.reason).toBe("the store contradicts itself");
  });
});
