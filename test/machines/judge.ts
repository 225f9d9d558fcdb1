/**
 * The search for where a chart differs from its rules. Every finding is a sentence, so that the
 * same search judges the real chart, which must yield none, and each of its mutants, which must
 * yield one.
 */
import { isDeepStrictEqual } from "node:util";
import type { AnyMachineSnapshot, AnyStateMachine } from "xstate";
import { step } from "../../src/kernel/xstate.js";
import {
  type Exploration,
  type ExploredState,
  type ExploredStep,
  exploreMachine,
} from "../../src/testing/explore.js";
import {
  type AnyEvent,
  type ChartRules,
  type Invariant,
  type MoveInvariant,
  type Row,
  stateOf,
  titleOf,
} from "./chart-rules.js";

export type ChartExploration = Exploration<AnyStateMachine>;
type Step = Omit<ExploredStep<AnyStateMachine>, "to">;

const STEPS_MAX = 50_000;

/** The chart explored from each of its inputs. */
export function exploreAll<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  machine: AnyStateMachine = rules.machine,
): readonly ChartExploration[] {
  return Object.values(rules.inputs).map((input) =>
    exploreMachine(machine, {
      input,
      events: (snapshot) => rules.events(snapshot.context as C),
      project: rules.project,
      limit: STEPS_MAX,
    }),
  );
}

/** Everything in which a chart differs from its rules. Lazy: the first finding may be enough. */
export function* breaches<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  machine: AnyStateMachine = rules.machine,
): Generator<string> {
  const explorations = exploreAll(rules, machine);
  yield* beginningBreaches(rules, explorations);
  yield* tableBreaches(rules, explorations);
  for (const row of rules.rows) yield* rowBreaches(rules, row, explorations);
  for (const invariant of rules.invariants) yield* invariantBreaches(invariant, explorations);
  for (const invariant of rules.moves) yield* moveBreaches(invariant, explorations);
  yield* coverageBreaches(explorations);
}

/**
 * Findings of a chart put into states that were explored before, those of its like. It sees less
 * than `breaches`, and sees it at once.
 */
export function* breachesAt<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  machine: AnyStateMachine,
  states: readonly ExploredState<AnyStateMachine>[],
): Generator<string> {
  for (const state of states) {
    const { value, context } = state.snapshot;
    const from = { ...state, snapshot: machine.resolveState({ value, context }) };
    yield* statusBreaches(rules, from.snapshot);
    for (const event of rules.events(context as C)) {
      yield* stepBreaches(rules, takeStep(machine, from, event));
    }
  }
}

function takeStep(machine: AnyStateMachine, from: Step["from"], event: AnyEvent): Step {
  const taken = step(machine, from.snapshot, event);
  const chosen = machine.getTransitionData(from.snapshot, event);
  return {
    from,
    event,
    arms: chosen.map((definition) => ({ id: event.type, definition })),
    refusal: taken.accepted ? null : taken.reason,
    effects: taken.accepted ? taken.effects.map((effect) => effect.type) : [],
    next: taken.accepted ? taken.snapshot : from.snapshot,
  };
}

/** Where an exploration begins, and which states are ends. */
export function* beginningBreaches<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  explorations: readonly ChartExploration[],
): Generator<string> {
  for (const [index, input] of Object.values(rules.inputs).entries()) {
    const states = explorations[index]?.states ?? [];
    const first = states[0]?.snapshot as AnyMachineSnapshot;
    if (stateOf(first) !== rules.initial.state) yield `it begins in ${stateOf(first)}`;
    if (!isDeepStrictEqual(first.context, rules.initial.context(input as never))) {
      yield `it begins with ${JSON.stringify(first.context)}`;
    }
    for (const { snapshot } of states) yield* statusBreaches(rules, snapshot);
  }
}

function* statusBreaches<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  snapshot: AnyMachineSnapshot,
): Generator<string> {
  const status = rules.finals.includes(stateOf(snapshot)) ? "done" : "active";
  if (snapshot.status !== status) yield `${stateOf(snapshot)} is ${snapshot.status}`;
}

/** Every step of the explorations, held against the table. */
export function* tableBreaches<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  explorations: readonly ChartExploration[],
): Generator<string> {
  for (const { edges, refusals } of explorations) {
    for (const taken of [...edges, ...refusals]) yield* stepBreaches(rules, taken);
  }
}

/** The steps of one row: there are some, and each ends as the row says. */
export function* rowBreaches<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  row: Row<C, E>,
  explorations: readonly ChartExploration[],
): Generator<string> {
  const edges = explorations.flatMap((e) => e.edges).filter((edge) => rowFor(rules, edge) === row);
  if (edges.length === 0) yield `no explored step takes the row ${titleOf(row)}`;
  for (const edge of edges) yield* outcomeBreaches(rules, row, edge);
}

/** A step that a row allows is taken as the row says; any other is refused and changes nothing. */
function* stepBreaches<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  taken: Step,
): Generator<string> {
  const row = rowFor(rules, taken);
  if (taken.arms.length === 0) {
    if (row !== undefined) yield `${spell(taken)} is refused, but ${titleOf(row)}`;
    if (taken.next !== taken.from.snapshot) yield `${spell(taken)} is refused and changes`;
    const reason = refusalReason(rules, taken);
    if (taken.refusal !== reason) yield `${spell(taken)} is refused, but not as ${reason}`;
  } else {
    if (taken.refusal !== null) yield `${spell(taken)} is taken by the chart, not by the kernel`;
    if (row === undefined) yield `${spell(taken)} is taken, but no row allows it`;
    else yield* outcomeBreaches(rules, row, taken);
  }
}

function* outcomeBreaches<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  row: Row<C, E>,
  taken: Step,
): Generator<string> {
  const from = stateOf(taken.from.snapshot);
  const to = row.to ?? from;
  const before = taken.from.snapshot.context as C;
  const event = taken.event as never;
  const expected = {
    ...before,
    ...rules.everyMove?.(before, event, from, to),
    ...row.sets?.(before, event),
  };
  const after = taken.next.context;
  if (stateOf(taken.next) !== to)
    yield `${spell(taken)} leads to ${stateOf(taken.next)}, not ${to}`;
  if (!isDeepStrictEqual(after, expected)) {
    yield `${spell(taken)} leaves ${JSON.stringify(after)}, not ${JSON.stringify(expected)}`;
  }
  const effects = row.effects ?? [];
  if (!isDeepStrictEqual(taken.effects, effects)) {
    yield `${spell(taken)} asks for [${taken.effects}], not for [${effects}]`;
  }
}

function refusalReason<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  { from, event }: Step,
): string {
  const state = stateOf(from.snapshot);
  if (rules.finals.includes(state)) return "terminalState";
  const isKnown = rules.rows.some((row) => row.from === state && row.on === event.type);
  return isKnown ? "guardFailed" : "illegalTransition";
}

/** A state in which an invariant does not hold: explored ones, and all that steps lead to. */
export function* invariantBreaches<C>(
  invariant: Invariant<C>,
  explorations: readonly ChartExploration[],
): Generator<string> {
  for (const { states, edges } of explorations) {
    const snapshots = [...states.map((state) => state.snapshot), ...edges.map((edge) => edge.next)];
    const broken = snapshots.find((s) => !invariant.holds(stateOf(s), s.context as C));
    if (broken !== undefined) {
      yield `in ${stateOf(broken)} with ${JSON.stringify(broken.context)}: not ${invariant.title}`;
    }
  }
}

/** A step over which an invariant does not hold. */
export function* moveBreaches<C>(
  invariant: MoveInvariant<C>,
  explorations: readonly ChartExploration[],
): Generator<string> {
  for (const { edges } of explorations) {
    const broken = edges.find((e) => !invariant.holds(e.from.snapshot.context, e.next.context));
    if (broken !== undefined) yield `${spell(broken)}: not ${invariant.title}`;
  }
}

/** States and arms that nothing reaches. */
export function* coverageBreaches(explorations: readonly ChartExploration[]): Generator<string> {
  const states = new Set(explorations.flatMap((e) => [...e.reachedStates]));
  const arms = new Set(explorations.flatMap((e) => [...e.reachedArms].map((arm) => arm.id)));
  for (const { definedStates, definedArms } of explorations.slice(0, 1)) {
    for (const state of definedStates) if (!states.has(state)) yield `${state} is never reached`;
    for (const arm of definedArms) if (!arms.has(arm.id)) yield `${arm.id} is never taken`;
  }
}

/** What the chart accepts, in the form of `ChartRules.accepts`. */
export function acceptanceTable(
  explorations: readonly ChartExploration[],
  events: readonly string[],
): readonly (readonly string[])[] {
  const steps = explorations.flatMap((e) => [...e.edges, ...e.refusals]);
  const cell = (state: string, event: string): string => {
    const tried = steps.filter((s) => stateOf(s.from.snapshot) === state && s.event.type === event);
    const taken = tried.filter((s) => s.arms.length > 0);
    if (taken.length === tried.length) return tried.length === 0 ? "untried" : "+";
    return taken.length === 0 ? "." : "?";
  };
  const states = explorations[0]?.definedStates ?? [];
  return [events, ...states.map((state) => [state, ...events.map((event) => cell(state, event))])];
}

function rowFor<C, E extends AnyEvent>(
  rules: ChartRules<C, E>,
  { from, event }: Step,
): Row<C, E> | undefined {
  const state = stateOf(from.snapshot);
  return rules.rows.find(
    (row) =>
      row.from === state &&
      row.on === event.type &&
      (row.if?.(from.snapshot.context as C, event as never) ?? true),
  );
}

function spell({ from, event }: Step): string {
  const { value, context } = from.snapshot;
  return `${JSON.stringify(event)} in ${value} with ${JSON.stringify(context)}`;
}
