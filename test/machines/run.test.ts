import { describe, expect, it } from "vitest";
import { runMachine } from "../../machines/index.js";
import { describeChart } from "./describe-chart.js";
import { runRules } from "./run.rules.js";
import { walk } from "./walk.js";

describeChart(runRules);

describe("a run from beginning to end", () => {
  const input = { workspaceId: "w", workflowId: "f", runId: "r", occurrence: "o" };

  it("numbers its questions and its barriers, and keeps how it ended", () => {
    const ask = { id: "ask", kind: "input", dueMs: null, deadlineMs: null } as const;
    const act = { id: "act", kind: "action", dueMs: null, deadlineMs: null } as const;
    const alone = { openedBy: null, maxParallel: 1 } as const;
    const { last } = walk(runMachine, input, [
      { type: "enter", sequence: 1, nodes: [ask], ...alone },
      { type: "stage", node: "ask", hasFailed: false },
      { type: "join" },
      { type: "enter", sequence: 4, nodes: [act], ...alone },
      { type: "retry", node: "act", dueMs: 5 },
      { type: "stage", node: "act", hasFailed: false },
      { type: "join" },
      { type: "enter", sequence: 8, nodes: [ask], ...alone },
      { type: "stage", node: "ask", hasFailed: true },
      { type: "join" },
    ]);
    expect(last.value).toBe("routing");
    expect(last.context).toMatchObject({
      questions: 2,
      lastActionOrdinal: 2,
      origin: { type: "node", node: "ask", hasFailed: true },
    });
  });
});
