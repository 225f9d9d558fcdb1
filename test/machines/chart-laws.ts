/**
 * Laws that hold for every chart, whatever it governs: its snapshots survive JSON, it is fit to be
 * drawn and re-implemented, and nothing in it belongs to a process.
 */
import { isDeepStrictEqual } from "node:util";
import { type AnyMachineSnapshot, type AnyStateMachine, transition } from "xstate";
import { stateOf } from "./chart-rules.js";
import type { ChartExploration } from "./judge.js";

/**
 * Where a snapshot that went through JSON behaves differently from the one that did not, or holds
 * something that JSON does not keep.
 */
export function* persistenceBreaches(
  machine: AnyStateMachine,
  explorations: readonly ChartExploration[],
): Generator<string> {
  for (const { states, edges, refusals } of explorations) {
    for (const { snapshot } of states) {
      const restored = restore(machine, snapshot);
      if (!isDeepStrictEqual(bare(restored), bare(snapshot))) {
        yield `${stateOf(snapshot)} with ${JSON.stringify(snapshot.context)} does not survive JSON`;
      }
    }
    for (const { from, event, next, effects } of [...edges, ...refusals]) {
      const [again, actions] = transition(machine, restore(machine, from.snapshot), event);
      const types = actions.map((action) => action.type);
      if (!isDeepStrictEqual(bare(again), bare(next)) || !isDeepStrictEqual(types, effects)) {
        yield `${stateOf(from.snapshot)} answers ${JSON.stringify(event)} otherwise when restored`;
      }
    }
  }
}

function bare({ value, context, status }: AnyMachineSnapshot) {
  return { value, context, status };
}

function restore(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): AnyMachineSnapshot {
  return machine.resolveState(JSON.parse(JSON.stringify(bare(snapshot))));
}

type Config = Readonly<Record<string, unknown>>;

const rootKeys = ["id", "version", "initial", "context", "schemas", "states"];
const stateKeys = ["type", "description", "on"];
const armKeys = ["guard", "target", "actions", "description"];

/** What keeps a chart from being drawn, stored or re-implemented. */
export function* formBreaches(machine: AnyStateMachine): Generator<string> {
  const config = machine.config as Config;
  const used = { guards: new Set<string>(), actions: new Set<string>() };
  yield* unknownKeys("the root", config, rootKeys);
  if (typeof config.version !== "string") yield "the chart has no version";
  for (const [name, state] of Object.entries(config.states as Record<string, Config>)) {
    yield* unknownKeys(name, state, stateKeys);
    yield* descriptionBreaches(name, state);
    for (const [event, arms] of Object.entries((state.on ?? {}) as Config)) {
      for (const arm of [arms].flat() as Config[])
        yield* armBreaches(`${name} ${event}`, arm, used);
    }
  }
  yield* implementationBreaches("guard", used.guards, machine.implementations.guards);
  yield* implementationBreaches("action", used.actions, machine.implementations.actions);
}

function* armBreaches(
  where: string,
  arm: Config,
  used: { readonly guards: Set<string>; readonly actions: Set<string> },
): Generator<string> {
  yield* unknownKeys(where, arm, armKeys);
  yield* descriptionBreaches(where, arm);
  const named: readonly (readonly [unknown, Set<string>])[] = [
    ...[arm.guard ?? []].flat().map((guard) => [guard, used.guards] as const),
    ...[arm.actions ?? []].flat().map((action) => [action, used.actions] as const),
  ];
  for (const [reference, names] of named) {
    const name = typeof reference === "string" ? reference : (reference as Config).type;
    if (typeof reference === "function" || typeof name !== "string") yield `${where} is not named`;
    else names.add(name);
  }
}

function* unknownKeys(where: string, config: Config, keys: readonly string[]): Generator<string> {
  for (const key of Object.keys(config)) if (!keys.includes(key)) yield `${where} has ${key}`;
}

function* descriptionBreaches(where: string, config: Config): Generator<string> {
  const { description } = config;
  if (typeof description !== "string" || !/^[A-Z].*\.$/.test(description)) {
    yield `${where} has no description that is a sentence`;
  }
}

function* implementationBreaches(
  kind: string,
  used: ReadonlySet<string>,
  implemented: object,
): Generator<string> {
  for (const name of used) if (!(name in implemented)) yield `${kind} ${name} is not implemented`;
  for (const name of Object.keys(implemented))
    if (!used.has(name)) yield `${kind} ${name} is unused`;
}
