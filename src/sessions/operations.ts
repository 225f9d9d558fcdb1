/**
 * The operations on a whole session: retire, reset, recycle, stop, destroy, and the two phases of
 * unregistering. Each is one plan and one commit; when the commit fails nothing has changed. What
 * they do to waiters follows from the reason for which inputs are abandoned.
 */
import type { AbandonReason } from "../../machines/input.js";
import type { SessionEvent } from "../../machines/session.js";
import type { LiveInput } from "./live-input.js";
import type { SessionRuntime } from "./runtime.js";
import type { SessionPlan } from "./session-plan.js";
import { readInputs, restoreInputs } from "./stored-inputs.js";
import { letGo } from "./turns.js";

export interface RetireReport {
  /** Inputs given up, since nothing is there to drain them. */
  readonly abandoned: number;
  /** Inputs that the turn loop still drains. */
  readonly pendingDrain: number;
}

export interface AbandonReport {
  readonly abandoned: number;
}

export interface RecycleReport {
  /** Inputs that wait again, read anew from their rows. */
  readonly transferred: number;
}

/** Takes no new input from here on; what waits drains where an executor is there, or is given up. */
export function retire(runtime: SessionRuntime): Promise<RetireReport> {
  return runtime.operation("retire", async () => {
    const drains = runtime.hasExecutor;
    const pendingDrain = drains ? runtime.state.inputs.size : 0;
    const { abandoned } = await end(runtime, {
      session: { type: "retire" },
      ...(drains ? {} : { inputs: { code: "retired" } }),
    });
    return { abandoned, pendingDrain };
  });
}

/** Gives all inputs up and goes on with empty lanes. */
export function reset(runtime: SessionRuntime): Promise<AbandonReport> {
  return runtime.operation("reset", () =>
    end(runtime, { session: { type: "reset" }, inputs: { code: "reset" } }),
  );
}

/** Gives all inputs up, cuts a turn off and lets go of the executor. The session can be opened again. */
export function stop(runtime: SessionRuntime): Promise<AbandonReport> {
  return runtime.operation("stop", () =>
    end(runtime, { session: { type: "stop" }, inputs: { code: "stopped" }, turn: "stopped" }),
  );
}

/** The end of the session: as `stop`, and it leaves the registry. */
export function destroy(runtime: SessionRuntime): Promise<AbandonReport> {
  return runtime.operation("destroy", () =>
    end(runtime, {
      session: { type: "destroy" },
      inputs: { code: "destroyed" },
      turn: "destroyed",
    }),
  );
}

/** Builds the lanes again from the rows: what is in memory does not count. */
export function recycle(runtime: SessionRuntime): Promise<RecycleReport> {
  return runtime.operation("recycle", async () => {
    const { state } = runtime;
    const plan = runtime.plan();
    // Refused before anything is read, where the state does not allow it.
    plan.moveSession({ type: "recycle" });
    const stored = await readInputs(runtime.id, state.ledger, (request) => runtime.list(request));
    const read = restoreInputs(stored.rows, runtime.surroundings());
    // An ephemeral input has no life outside this process; here it goes on.
    const ephemeral = [...state.inputs.values()].filter(isEphemeral);
    const inputs = [...read, ...ephemeral].sort((a, b) => a.sequence - b.sequence);
    for (const input of read) {
      if (input.actor.state === "accepted") plan.moveInput(input, { type: "queue", at: plan.at });
    }
    plan.onPublish(() => adopt(runtime, inputs));
    await runtime.commit(plan);
    return { transferred: inputs.length };
  });
}

/** First phase: no turn begins any more; the one in progress may still commit. */
export function beginUnregister(runtime: SessionRuntime): Promise<void> {
  return move(runtime, { type: "unregister" });
}

/** Second phase, once no turn is in progress: the session leaves the registry, its rows stay. */
export function endUnregister(runtime: SessionRuntime): Promise<void> {
  return move(runtime, { type: "unregistered" });
}

/** The second phase did not commit: the session goes on as if it had not been asked. */
export function resumeRegistration(runtime: SessionRuntime): Promise<void> {
  return move(runtime, { type: "resumeRegistration" });
}

function move(runtime: SessionRuntime, event: SessionEvent): Promise<void> {
  return runtime.operation("unregister", async () => {
    const plan = runtime.plan();
    plan.moveSession(event);
    await runtime.commit(plan);
  });
}

interface Ending {
  readonly session: SessionEvent;
  /** Why all inputs are given up, if they are. */
  readonly inputs?: AbandonReason;
  /** Why a turn in progress is cut off, if it may be. */
  readonly turn?: string;
}

async function end(runtime: SessionRuntime, ending: Ending): Promise<AbandonReport> {
  await runtime.refreshEndedKeys();
  const plan = runtime.plan();
  const abandoned = ending.inputs === undefined ? 0 : abandonAll(plan, runtime, ending.inputs);
  const { turn } = runtime.state;
  if (ending.turn !== undefined && turn !== null && !turn.hasEnded) {
    plan.moveTurn(turn, { type: "interrupt", at: plan.at, reason: `session ${ending.turn}` });
    plan.onPublish(() => letGo(turn, { type: "completedWithoutResult" }));
  }
  plan.moveSession(ending.session);
  await runtime.commit(plan);
  return { abandoned };
}

function abandonAll(plan: SessionPlan, { state }: SessionRuntime, reason: AbandonReason): number {
  for (const input of state.inputs.values()) {
    plan.moveInput(input, { type: "abandon", at: plan.at, reason });
  }
  return state.inputs.size;
}

function isEphemeral(input: LiveInput): boolean {
  return input.header.durability === "ephemeral";
}

/** Takes inputs that were read anew in place of those in memory, with those who wait for them. */
function adopt({ state }: SessionRuntime, inputs: readonly LiveInput[]): void {
  const before = new Map(state.inputs);
  state.inputs.clear();
  state.inputOfActor.clear();
  state.lanes.clear();
  for (const input of inputs) {
    const known = before.get(input.id);
    if (known !== undefined) input.waiter = known.waiter;
    before.delete(input.id);
    state.inputs.set(input.id, input);
    state.inputOfActor.set(input.actor.id, input);
    if (input.actor.state === "queued") state.lanes.enter(input);
  }
  for (const gone of before.values()) {
    gone.waiter.resolve({ type: "terminated", reason: "session recycled" });
  }
}
