/**
 * Recovery of one session, all or nothing: reads its rows, decides on each, commits once, and only
 * then is there a runtime. Only the rows of the session's own id are read. It reads from the first
 * active input on, so it costs what is active and not what there ever was.
 */
import { sessionMachine } from "../../machines/session.js";
import { CorruptionError, show } from "../errors.js";
import { DurableActor } from "../kernel/actor.js";
import { isoInstant } from "../kernel/clock.js";
import { retryBounded } from "../kernel/retry.js";
import { initialSnapshot, restoreSnapshot } from "../kernel/xstate.js";
import type { JsonObject } from "../store/port.js";
import type { Environment } from "./environment.js";
import { Lanes } from "./lanes.js";
import type { LiveInput } from "./live-input.js";
import { LiveTurn } from "./live-turn.js";
import {
  decodeSession,
  emptyLedger,
  keys,
  type Ledger,
  type SessionRecord,
  type TurnRecord,
} from "./records.js";
import { isUnavailable, SessionRuntime } from "./runtime.js";
import type { SessionPlan } from "./session-plan.js";
import type { SessionState } from "./session-state.js";
import {
  isActive,
  readInputs,
  requireNoConflict,
  restoreInputs,
  type StoredInput,
} from "./stored-inputs.js";

export interface RecoveryReport {
  /** Inputs that were active. */
  readonly recovered: number;
  readonly abandoned: number;
  /** Inputs that a turn held and that wait again. */
  readonly requeued: number;
  readonly details: readonly {
    readonly inputId: string;
    readonly from: string;
    readonly to: string;
  }[];
}

export interface ActivateOptions {
  readonly metadata?: JsonObject | undefined;
  readonly silentIntents?: readonly string[] | undefined;
  /** An executor will be bound: the session is attached in the same commit. */
  readonly attach: boolean;
  /** A stopped session is taken back into service; without it, it stays stopped. */
  readonly register: boolean;
}

/** A session found in the store, or a new one, with its runtime and what recovery did. */
export interface Activated {
  readonly runtime: SessionRuntime;
  readonly report: RecoveryReport;
  readonly isNew: boolean;
}

/**
 * Claims the session and brings it to life. Nothing is written unless everything could be read.
 * @throws CorruptionError | StoreError nothing has changed
 */
export async function activate(
  environment: Environment,
  id: string,
  options: ActivateOptions,
): Promise<Activated> {
  const { store, clock } = environment;
  const again = <T>(attempt: () => Promise<T>): Promise<T> =>
    retryBounded(attempt, { clock, mayRetry: isUnavailable });
  const lease = await again(() => store.claim(keys.session(id)));
  const stored = await again(() => store.load(keys.session(id)));
  const session = stored === undefined ? undefined : decodeSession(stored);
  const { rows, forgotten, nextInput } = await readInputs(id, session?.ledger, (request) =>
    again(() => store.list(request)),
  );
  requireNoConflict(stored, session, rows);

  const atMs = clock.nowMs();
  const state = makeState(environment, id, {
    session,
    rows,
    nextInput,
    options,
    at: isoInstant(atMs),
  });
  const runtime = new SessionRuntime({ state, environment, lease });
  const plan = runtime.plan();
  plan.moves.push({
    actor: state.actor.id,
    from: "",
    to: state.actor.state,
    event: { type: session === undefined ? "created" : "restored" },
  });
  await moveSession(runtime, plan, session, options);
  const report = await moveInputs(runtime, plan, rows, again);
  // Rows that another program wrote have no indexes; ours got them in the commit of their admission.
  if (session === undefined) rebuildIndexes(plan, id, rows);
  for (const { sequence, header } of forgotten) plan.forget(sequence, header);
  plan.keepActive();
  await runtime.commit(plan);
  return { runtime, report, isNew: session === undefined && rows.length === 0 };
}

function makeState(
  environment: Environment,
  id: string,
  from: {
    readonly session: SessionRecord | undefined;
    readonly rows: readonly StoredInput[];
    readonly nextInput: number;
    readonly options: ActivateOptions;
    readonly at: string;
  },
): SessionState {
  const { session, rows, options, at } = from;
  const isOver = session === undefined || session.snapshot.value === "destroyed";
  const snapshot = isOver
    ? initialSnapshot(sessionMachine, {
        sessionId: id,
        ...(options.silentIntents === undefined ? {} : { silentIntents: options.silentIntents }),
      })
    : restoreSnapshot(sessionMachine, session.snapshot);
  const state: SessionState = {
    id,
    actor: new DurableActor({
      id: `session/${id}`,
      machine: sessionMachine,
      snapshot,
      watch: environment.watch,
    }),
    metadata: options.metadata ?? session?.metadata ?? {},
    createdAt: session?.createdAt ?? at,
    ledger: session?.ledger ?? ledgerOf(rows, from.nextInput),
    inputs: new Map(),
    inputOfActor: new Map(),
    lanes: new Lanes(),
    turn: null,
    oldestEndedKeys: [],
  };
  for (const input of restoreInputs(rows, {
    sessionId: id,
    silentIntents: state.actor.context.silentIntents,
    watch: environment.watch,
  })) {
    state.inputs.set(input.id, input);
    state.inputOfActor.set(input.actor.id, input);
  }
  return state;
}

/** The counts of rows that have no session record. */
function ledgerOf(rows: readonly StoredInput[], nextInput: number): Ledger {
  const nextPosition = rows.reduce((next, { input }) => Math.max(next, input.position + 1), 0);
  return { ...emptyLedger, nextInput, nextPosition };
}

/** Brings the runtime's chart to where a process without this session's past would have it. */
async function moveSession(
  runtime: SessionRuntime,
  plan: SessionPlan,
  session: SessionRecord | undefined,
  options: ActivateOptions,
): Promise<void> {
  const { state, environment } = runtime;
  const value = plan.state(state.actor as never);
  if (value === "initializing" || (value === "stopped" && options.register)) {
    plan.moveSession({ type: "register" });
  }
  const { turnId, generation } = plan.context(state.actor);
  if (turnId !== null && session !== undefined) {
    const record = await runtime.load(keys.turn(state.id, turnId));
    if (record === undefined) {
      throw new CorruptionError(`Session ${show(state.id)}`, `its turn ${turnId} is not there`);
    }
    const { snapshot } = record.value as unknown as TurnRecord;
    const turn = LiveTurn.restore({ sessionId: state.id, turnId, snapshot }, environment.watch);
    if (!turn.hasEnded) {
      plan.moveTurn(turn, { type: "interrupt", at: plan.at, reason: "the process ended" });
    }
    plan.moveSession({ type: "turn.ended", turnId });
  }
  const isStopped = plan.state(state.actor as never) === "stopped";
  if (options.attach && !isStopped)
    plan.moveSession({ type: "attach", generation: generation + 1 });
}

async function moveInputs(
  runtime: SessionRuntime,
  plan: SessionPlan,
  rows: readonly StoredInput[],
  again: <T>(attempt: () => Promise<T>) => Promise<T>,
): Promise<RecoveryReport> {
  const { state, environment } = runtime;
  const details: { inputId: string; from: string; to: string }[] = [];
  let requeued = 0;
  const recovered = state.inputs.size;
  const waiting: LiveInput[] = [];
  for (const { input: row } of rows) {
    const input = state.inputs.get(row.id);
    if (input === undefined) continue;
    const from = input.actor.state;
    switch (from) {
      case "accepted": {
        const { apply, consume } = input.policy.decision;
        const isConsumed = apply === "ignore" && consume === "onAccept";
        plan.moveInput(input, { type: isConsumed ? "consumeOnAccept" : "queue", at: plan.at });
        break;
      }
      case "queued":
        waiting.push(input);
        break;
      case "staged":
        plan.moveInput(input, { type: "requeue", at: plan.at });
        requeued += 1;
        break;
      default: {
        const isProven = await again(() => hasReceipt(environment, state.id, input));
        if (!isProven) {
          plan.moveInput(input, { type: "requeue", at: plan.at });
          requeued += 1;
          break;
        }
        if (from === "applied") {
          const sequence = input.actor.context.lastBoundarySequence ?? 0;
          plan.moveInput(input, { type: "awaitConsumption", at: plan.at, sequence });
        }
        plan.moveInput(input, { type: "consume", at: plan.at });
      }
    }
    const to = plan.state(input.actor as never);
    if (to !== from) details.push({ inputId: input.id, from, to });
  }
  // Inputs that waited are on their lane without a move; the others enter by the effect of theirs.
  plan.onPublish(() => {
    for (const input of waiting) state.lanes.enter(input);
  });
  return { recovered, abandoned: 0, requeued, details };
}

/** Whether the turn that held an input proved its boundary. A read error ends recovery. */
async function hasReceipt(
  { store }: Environment,
  sessionId: string,
  input: LiveInput,
): Promise<boolean> {
  const { lastTurnId, lastBoundarySequence } = input.actor.context;
  if (lastTurnId === null) return false;
  const key = keys.receipt(sessionId, lastTurnId, lastBoundarySequence ?? 0);
  return (await store.load(key)) !== undefined;
}

function rebuildIndexes(plan: SessionPlan, id: string, rows: readonly StoredInput[]): void {
  for (const row of rows) {
    const { input } = row;
    plan.put(keys.inputId(id, input.id), { sequence: input.sequence });
    plan.indexKey(input, { isEnded: !isActive(row) });
  }
}
