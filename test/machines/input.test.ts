import { describe, expect, it } from "vitest";
import { type InputEvent, inputMachine } from "../../machines/index.js";
import { describeChart } from "./describe-chart.js";
import { inputRules } from "./input.rules.js";
import { walk } from "./walk.js";

const at = "2026-01-02T03:04:05.678Z";

describeChart(inputRules);

/** Admitted, then staged and rolled back `times` times. */
function failing(times: number): readonly InputEvent[] {
  const turns = Array.from({ length: times }, (_, index): readonly InputEvent[] => [
    { type: "stage", at, turnId: `turn-${index + 1}` },
    { type: "rollback", at },
  ]);
  return [{ type: "queue", at }, ...turns.flat()];
}

describe("attempts of an input", () => {
  for (const attemptsMax of [1, 2, 3]) {
    it(`after ${attemptsMax} failed turns of ${attemptsMax} it is abandoned, off every lane`, () => {
      const input = { inputId: "input-1", attemptsMax };
      const before = walk(inputMachine, input, failing(attemptsMax - 1)).last;
      expect(before.value).toBe("queued");
      expect(before.context.attempts).toBe(attemptsMax - 1);

      const { last, effects } = walk(inputMachine, input, failing(attemptsMax));
      expect(last.value).toBe("abandoned");
      expect(last.status).toBe("done");
      expect(last.context.outcome).toEqual({
        type: "abandoned",
        reason: { code: "maxAttemptsExhausted", attempts: attemptsMax },
      });
      expect(effects.at(-1)).toEqual(["tellEnd"]);
    });
  }

  it("survive restarts: taken back twice from its last attempt, it ends at the next failure", () => {
    const { last } = walk(inputMachine, { inputId: "input-1", attemptsMax: 1 }, [
      { type: "queue", at },
      { type: "stage", at, turnId: "turn-1" },
      { type: "requeue", at },
      { type: "stage", at, turnId: "turn-2" },
      { type: "requeue", at },
      { type: "stage", at, turnId: "turn-3" },
      { type: "rollback", at },
    ]);
    expect(last.value).toBe("abandoned");
    expect(last.context).toMatchObject({
      attempts: 3,
      recoveries: 2,
      outcome: { type: "abandoned", reason: { code: "maxAttemptsExhausted", attempts: 3 } },
    });
  });
});

describe("the boundary of an input", () => {
  it("of a turn without receipt is not carried into the next turn", () => {
    const { last } = walk(inputMachine, { inputId: "input-1", attemptsMax: 3 }, [
      { type: "queue", at },
      { type: "stage", at, turnId: "turn-1" },
      { type: "apply", at, turnId: "turn-1" },
      { type: "awaitConsumption", at, sequence: 4 },
      { type: "requeue", at },
      { type: "stage", at, turnId: "turn-2" },
      { type: "apply", at, turnId: "turn-2" },
    ]);
    expect(last.context).toMatchObject({ lastTurnId: "turn-2", lastBoundarySequence: null });
  });
});

describe("the history of an input", () => {
  it("keeps the last 200 moves of a very long life, in order", () => {
    const restarts = Array.from({ length: 150 }, (_, index): readonly InputEvent[] => [
      { type: "stage", at: `stage ${index}`, turnId: `turn-${index}` },
      { type: "requeue", at: `requeue ${index}` },
    ]);
    const events: readonly InputEvent[] = [{ type: "queue", at }, ...restarts.flat()];
    const { history } = walk(inputMachine, { inputId: "input-1", attemptsMax: 3 }, events).last
      .context;
    expect(history).toHaveLength(200);
    expect(history.map((move) => move.at)).toEqual(events.slice(-200).map((event) => event.at));
    expect(history.at(-1)).toEqual({
      at: "requeue 149",
      from: "staged",
      to: "queued",
      event: "requeue",
    });
  });
});
