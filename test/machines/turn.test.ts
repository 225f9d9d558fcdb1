import { describe, expect, it } from "vitest";
import { type TurnInput, turnMachine } from "../../machines/index.js";
import { describeChart } from "./describe-chart.js";
import { turnRules } from "./turn.rules.js";
import { walk } from "./walk.js";

describeChart(turnRules);

const input: TurnInput = {
  turnId: "turn-1",
  sessionId: "session-1",
  inputIds: ["input-1", "input-2"],
  boundary: "turnStart",
  stagedAt: "2026-01-02T03:00:00.000Z",
};

describe("a turn from beginning to end", () => {
  it("keeps when it began and ended, and how many receipts it minted", () => {
    const { last } = walk(turnMachine, input, [
      { type: "begin", at: "2026-01-02T03:00:01.000Z" },
      { type: "boundary.reached", at: "2026-01-02T03:00:02.000Z", sequence: 0 },
      { type: "boundary.reached", at: "2026-01-02T03:00:03.000Z", sequence: 1 },
      { type: "complete", at: "2026-01-02T03:00:04.000Z" },
    ]);
    expect(last.value).toBe("completed");
    expect(last.status).toBe("done");
    expect(last.context).toEqual({
      ...input,
      begunAt: "2026-01-02T03:00:01.000Z",
      endedAt: "2026-01-02T03:00:04.000Z",
      boundaries: 2,
      reason: null,
    });
  });

  it("that never began ends as never executed, with no receipt and no beginning", () => {
    const { last } = walk(turnMachine, input, [{ type: "expire", at: "2026-01-02T04:00:00.000Z" }]);
    expect(last.value).toBe("neverExecuted");
    expect(last.context).toEqual({
      ...input,
      begunAt: null,
      endedAt: "2026-01-02T04:00:00.000Z",
      boundaries: 0,
      reason: null,
    });
  });
});
