/** The tests that every chart takes: one for each row of its table, and one for each law. */
import { describe, expect, it } from "vitest";
import { formBreaches, persistenceBreaches } from "./chart-laws.js";
import { type AnyEvent, type ChartRules, cellsOf, titleOf } from "./chart-rules.js";
import {
  acceptanceTable,
  beginningBreaches,
  coverageBreaches,
  exploreAll,
  invariantBreaches,
  moveBreaches,
  rowBreaches,
  tableBreaches,
} from "./judge.js";

export function describeChart<C, E extends AnyEvent>(rules: ChartRules<C, E>): void {
  const { machine } = rules;
  describe(`the ${machine.id} chart`, () => {
    const explorations = exploreAll(rules);

    it("begins and ends where its rules say", () => {
      expect([...beginningBreaches(rules, explorations)]).toEqual([]);
    });

    it("is explored whole: every state is reached and every arm is taken", () => {
      expect([...coverageBreaches(explorations)]).toEqual([]);
    });

    for (const row of rules.rows) {
      it(titleOf(row), () => {
        expect([...rowBreaches(rules, row, explorations)]).toEqual([]);
      });
    }

    it("does nothing else: it refuses with one of three reasons and keeps the very snapshot", () => {
      expect([...tableBreaches(rules, explorations)]).toEqual([]);
    });

    it("accepts exactly the events of its table, in each state", () => {
      const expected = cellsOf(rules.accepts);
      const [events = []] = expected;
      const tried = new Set(explorations.flatMap((e) => e.refusals.map((s) => s.event.type)));
      expect([...tried].filter((type) => !events.includes(type))).toEqual([]);
      expect(acceptanceTable(explorations, events)).toEqual(expected);
    });

    for (const invariant of rules.invariants) {
      it(`in every state: ${invariant.title}`, () => {
        expect([...invariantBreaches(invariant, explorations)]).toEqual([]);
      });
    }

    for (const invariant of rules.moves) {
      it(`over every step: ${invariant.title}`, () => {
        expect([...moveBreaches(invariant, explorations)]).toEqual([]);
      });
    }

    it("behaves the same after its snapshot went through JSON", () => {
      expect([...persistenceBreaches(machine, explorations)]).toEqual([]);
    });

    it("is fit to be drawn: described, named, versioned, and free of invoke, after and always", () => {
      expect([...formBreaches(machine)]).toEqual([]);
    });
  });
}
