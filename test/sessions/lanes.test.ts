import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BATCH_MAX, type LaneItem, Lanes } from "../../src/sessions/lanes.js";

function item(position: number, of: Partial<LaneItem> = {}): LaneItem {
  return {
    position,
    lane: "queue",
    boundary: of.lane === "steer" ? "turnCheckpoint" : "turnStart",
    isPrompt: false,
    drives: true,
    notBeforeMs: 0,
    ...of,
  };
}

function lanesOf(...items: readonly LaneItem[]): Lanes<LaneItem> {
  const lanes = new Lanes<LaneItem>();
  for (const one of items) lanes.enter(one);
  return lanes;
}

const positions = (items: readonly LaneItem[]) => items.map(({ position }) => position);

describe("what a turn takes off the lanes", () => {
  it("the steer lane goes first, its prefix of one boundary", () => {
    const lanes = lanesOf(
      item(0),
      item(1, { lane: "steer" }),
      item(2, { lane: "steer" }),
      item(3, { lane: "steer", boundary: "turnStart" }),
    );
    expect(positions(lanes.select(0))).toEqual([1, 2]);
  });

  it("a prompt alone", () => {
    const lanes = lanesOf(item(0, { isPrompt: true }), item(1, { isPrompt: true }), item(2));
    expect(positions(lanes.select(0))).toEqual([0]);
  });

  it("consecutive inputs that are no prompts together, up to the next prompt", () => {
    const lanes = lanesOf(item(0), item(1), item(2, { isPrompt: true }), item(3));
    expect(positions(lanes.select(0))).toEqual([0, 1]);
  });

  it("nothing where nothing drives", () => {
    const lanes = lanesOf(item(0, { drives: false }), item(1, { lane: "steer", drives: false }));
    expect(lanes.select(0)).toEqual([]);
  });

  it("passive inputs ride along with the first that drives, of both lanes", () => {
    const lanes = lanesOf(
      item(0, { drives: false }),
      item(1, { isPrompt: true }),
      item(2, { lane: "steer", drives: false }),
      item(3),
    );
    expect(positions(lanes.select(0))).toEqual([2, 0, 1]);
  });

  it("an input that pauses is passed over until its time", () => {
    const lanes = lanesOf(
      item(0, { isPrompt: true, notBeforeMs: 10 }),
      item(1, { isPrompt: true }),
    );
    expect(positions(lanes.select(9))).toEqual([1]);
    expect(positions(lanes.select(10))).toEqual([0]);
    expect(lanes.nextDueMs(9)).toBe(10);
    expect(lanes.nextDueMs(10)).toBeUndefined();
  });

  it("no more than a batch", () => {
    const lanes = lanesOf(...Array.from({ length: BATCH_MAX + 5 }, (_, place) => item(place)));
    expect(lanes.select(0)).toHaveLength(BATCH_MAX);
  });

  it("an input that comes back takes its old place", () => {
    const [a, b, c] = [item(0), item(1), item(2)];
    const lanes = lanesOf(a, b, c);
    lanes.leave(a);
    lanes.leave(b);
    lanes.enter(b);
    lanes.enter(a);
    expect(positions(lanes.items())).toEqual([0, 1, 2]);
    lanes.clear();
    expect(lanes.size).toBe(0);
  });

  it("whatever waits: a batch is never empty while something that drives may be taken, and takes in order", () => {
    const anyItem = fc.record({
      lane: fc.constantFrom("queue" as const, "steer" as const),
      isPrompt: fc.boolean(),
      drives: fc.boolean(),
      notBeforeMs: fc.constantFrom(0, 0, 0, 5),
      boundary: fc.constantFrom("turnStart" as const, "turnCheckpoint" as const),
    });
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 12 }), (drawn) => {
        const items = drawn.map((of, position) => item(position, of));
        const lanes = lanesOf(...items);
        const batch = lanes.select(0);
        const canDrive = items.some((one) => one.drives && one.notBeforeMs === 0);
        if (canDrive) expect(batch.length).toBeGreaterThan(0);
        if (batch.length > 0) expect(batch.some((one) => one.drives)).toBe(true);
        for (const lane of ["steer", "queue"] as const) {
          const taken = positions(batch.filter((one) => one.lane === lane));
          expect(taken).toEqual([...taken].sort((x, y) => x - y));
        }
        const driving = batch.filter((one) => one.lane === "queue" && one.drives);
        if (driving.some((one) => one.isPrompt)) expect(driving).toHaveLength(1);
        expect(batch.every((one) => one.notBeforeMs === 0)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
