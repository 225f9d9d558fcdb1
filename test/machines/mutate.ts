/**
 * A mutator for flat charts: every small change of the configuration that could be a slip of the
 * pen, one at a time. General mutation tools see configurations as static, since they are built
 * when the module is loaded.
 */
import { type AnyStateMachine, not, StateMachine } from "xstate";

/** A chart with one change, and the change in words. */
export interface Mutant {
  /** The state that the change is about. */
  readonly state: string;
  readonly title: string;
  readonly machine: AnyStateMachine;
}

type Reference = string | { readonly type: string; readonly params?: Record<string, string> };

interface Arm {
  target?: string;
  guard?: string;
  actions?: Reference | Reference[];
  description?: string;
}

interface StateConfig {
  type?: string;
  description?: string;
  on?: Record<string, Arm | Arm[]>;
}

interface ChartConfig {
  initial: string;
  states: Record<string, StateConfig>;
}

/** One change, applied to a copy of the configuration. */
interface Change {
  readonly state: string;
  readonly title: string;
  readonly apply: (config: ChartConfig) => void;
}

export function* mutantsOf(machine: AnyStateMachine): Generator<Mutant> {
  const original = machine.config as unknown as ChartConfig;
  for (const { state, title, apply } of changesOf(original)) {
    const config = copyOf(original);
    apply(config);
    const mutant = new StateMachine(config as never, machine.implementations as never);
    yield { state, title, machine: mutant };
  }
}

function* changesOf(config: ChartConfig): Generator<Change> {
  const states = Object.keys(config.states);
  const events = new Set(Object.values(config.states).flatMap((s) => Object.keys(s.on ?? {})));
  for (const initial of states.filter((state) => state !== config.initial)) {
    yield {
      state: initial,
      title: `begins in ${initial}`,
      apply: (copy) => Object.assign(copy, { initial }),
    };
  }
  for (const [state, { type, on = {} }] of Object.entries(config.states)) {
    yield finalityChange(state, type);
    for (const event of events) if (!(event in on)) yield additionOf(state, event);
    for (const [event, arms] of Object.entries(on)) {
      const all = [arms].flat();
      if (all.length > 1) yield reversalOf(state, event);
      for (const [index, arm] of all.entries()) {
        yield* armChanges({ state, event, index, arm, states });
      }
    }
  }
}

function finalityChange(state: string, type: string | undefined): Change {
  return type === "final"
    ? { state, title: `${state} is no end`, apply: (copy) => delete copy.states[state]?.type }
    : {
        state,
        title: `${state} is an end`,
        // A final state has no transitions in XState, so they go too.
        apply: (copy) => {
          copy.states[state] = { type: "final" };
        },
      };
}

function additionOf(state: string, event: string): Change {
  return {
    state,
    title: `${state} takes ${event} and does nothing`,
    apply: (copy) => {
      const config = copy.states[state];
      if (config !== undefined) config.on = { ...config.on, [event]: {} };
    },
  };
}

function reversalOf(state: string, event: string): Change {
  return {
    state,
    title: `${state} ${event}: its arms in reverse`,
    apply: (copy) => {
      const arms = copy.states[state]?.on?.[event];
      if (Array.isArray(arms)) arms.reverse();
    },
  };
}

interface Place {
  readonly state: string;
  readonly event: string;
  readonly index: number;
  readonly arm: Arm;
  readonly states: readonly string[];
}

function* armChanges(place: Place): Generator<Change> {
  const { state, event, index, arm, states } = place;
  const where = `${state} ${event}${index > 0 ? ` (${index + 1})` : ""}`;
  const change = (title: string, edit: (arm: Arm) => void): Change => ({
    state,
    title: `${where}: ${title}`,
    apply: (copy) => edit(armAt(copy, place)),
  });

  yield { state, title: `${where}: dropped`, apply: (copy) => dropArm(copy, place) };
  for (const target of states.filter((name) => name !== (arm.target ?? state))) {
    yield change(`leads to ${target}`, (copy) => Object.assign(copy, { target }));
  }
  const { guard } = arm;
  if (guard !== undefined) {
    yield change(`without guard ${guard}`, (copy) => delete copy.guard);
    yield change(`not ${guard}`, (copy) => Object.assign(copy, { guard: not(guard) }));
  }
  const actions = actionsOf(arm);
  for (const [position, action] of actions.entries()) {
    const name = typeof action === "string" ? action : action.type;
    yield change(`without ${name}`, (copy) => {
      copy.actions = actionsOf(copy).filter((_, at) => at !== position);
    });
    for (const params of otherParams(action, states)) {
      yield change(`${name} with ${JSON.stringify(params)}`, (copy) => {
        copy.actions = actionsOf(copy).with(position, { type: name, params });
      });
    }
  }
}

function actionsOf(arm: Arm): Reference[] {
  return arm.actions === undefined ? [] : [arm.actions].flat();
}

/** Each parameter in turn with another state's name. */
function* otherParams(
  action: Reference,
  states: readonly string[],
): Generator<Record<string, string>> {
  if (typeof action === "string" || action.params === undefined) return;
  for (const [key, value] of Object.entries(action.params)) {
    const other = states.find((state) => state !== value);
    if (other !== undefined) yield { ...action.params, [key]: other };
  }
}

function armAt(config: ChartConfig, { state, event, index }: Place): Arm {
  return [config.states[state]?.on?.[event] ?? []].flat()[index] as Arm;
}

function dropArm(config: ChartConfig, { state, event, index }: Place): void {
  const on = config.states[state]?.on as Record<string, Arm | Arm[]>;
  const rest = [on[event] ?? []].flat().filter((_, at) => at !== index);
  if (rest.length > 0) on[event] = rest;
  else delete on[event];
}

/** Copies what is data; functions, which only the root's `context` holds, are shared. */
function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, v]) => [key, copyOf(v)])) as T;
}
