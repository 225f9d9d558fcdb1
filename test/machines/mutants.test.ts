/**
 * The tests of the tests: every chart with one small change must be found out by the rules that the
 * chart is tested with. A change that no rule could notice is listed below with its reason.
 */
import { describe, expect, it } from "vitest";
import type { AnyStateMachine } from "xstate";
import type { ExploredState } from "../../src/testing/explore.js";
import type { ChartRules } from "./chart-rules.js";
import { inputRules } from "./input.rules.js";
import { breaches, breachesAt, exploreAll } from "./judge.js";
import { type Mutant, mutantsOf } from "./mutate.js";
import { runRules } from "./run.rules.js";
import { sessionRules } from "./session.rules.js";
import { supervisorRules } from "./supervisor.rules.js";
import { turnRules } from "./turn.rules.js";

/** Changes that leave the behaviour as it is, by chart, each with the reason. */
const disjoint = "a group has a node that works, or none: one guard is the other's opposite";
const equivalents: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  run: {
    "parked enter: its arms in reverse": disjoint,
    "routing enter: its arms in reverse": disjoint,
  },
};

type Explored = ExploredState<AnyStateMachine>;
type AnyRules = ChartRules<never, never>;

/** Whether the rules find the change. The states that the change is about are looked at first. */
function isFoundOut(rules: AnyRules, mutant: Mutant, explored: readonly Explored[]): boolean {
  const near = explored.filter((state) => state.leaves.includes(mutant.state));
  try {
    if (breachesAt(rules, mutant.machine, near).next().done !== true) return true;
    return breaches(rules, mutant.machine).next().done !== true;
  } catch {
    return true;
  }
}

describe.each([
  inputRules,
  turnRules,
  sessionRules,
  supervisorRules,
  runRules,
] as unknown as AnyRules[])("mutants of the $machine.id chart", (rules) => {
  it("are found out, all but the equivalent ones", () => {
    const explored = exploreAll(rules).flatMap((exploration) => exploration.states);
    const mutants = [...mutantsOf(rules.machine)];
    const alive = mutants.filter((mutant) => !isFoundOut(rules, mutant, explored));
    expect(mutants.length).toBeGreaterThan(100);
    expect(alive.map((mutant) => mutant.title)).toEqual(
      Object.keys(equivalents[rules.machine.id] ?? {}),
    );
  });
});
