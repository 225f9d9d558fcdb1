/**
 * The plans of a turn: staging, failure, cancel, interruption and expiry; its boundaries have a file
 * of their own. Each is one commit. The executor is called elsewhere, outside every lock.
 */
import { assert } from "../errors.js";
import type { Completion } from "./completion.js";
import type { LiveInput } from "./live-input.js";
import { LiveTurn } from "./live-turn.js";
import type { SessionRuntime } from "./runtime.js";
import type { SessionPlan } from "./session-plan.js";

/** Takes the next batch off the lanes, durably. `null`: nothing may be taken now. */
export async function stageTurn(runtime: SessionRuntime): Promise<LiveTurn | null> {
  const { state, environment } = runtime;
  if (!mayStart(runtime)) return null;
  const batch = state.lanes.select(environment.clock.nowMs());
  const first = batch[0];
  if (first === undefined) return null;

  const plan = runtime.plan();
  const turnId = environment.ids.next(plan.atMs);
  plan.moveSession({ type: "startTurn", turnId });
  for (const input of batch) plan.moveInput(input, { type: "stage", at: plan.at, turnId });
  const turn = LiveTurn.stage(
    {
      turnId,
      sessionId: runtime.id,
      inputIds: batch.map((input) => input.id),
      boundary: (batch.find((input) => input.drives) ?? first).boundary,
      stagedAt: plan.at,
    },
    batch,
    environment.watch,
  );
  plan.touchTurn(turn);
  plan.onPublish(() => {
    state.turn = turn;
  });
  await runtime.commit(plan);
  return turn;
}

function mayStart({ state, hasExecutor }: SessionRuntime): boolean {
  const { registration, turnId } = state.actor.context;
  return (
    hasExecutor &&
    (state.actor.state === "attached" || state.actor.state === "retired") &&
    registration !== "draining" &&
    turnId === null
  );
}

/** The inputs of a failed turn go back to their lane, or are given up after their last attempt. */
export async function failTurn(
  runtime: SessionRuntime,
  turn: LiveTurn,
  reason: string,
): Promise<void> {
  const { state, environment } = runtime;
  await runtime.refreshEndedKeys();
  const plan = runtime.plan();
  beginTurn(plan, turn);
  plan.moveTurn(turn, { type: "fail", at: plan.at, reason });
  // Whatever else waits goes first, so that one bad input starves nobody.
  const goesBehind = state.lanes.size > 0;
  const retried: LiveInput[] = [];
  for (const input of turn.inputs) {
    plan.moveInput(input, { type: "rollback", at: plan.at });
    if (plan.isEnded(input)) {
      plan.tell(input, {
        type: "abandoned",
        reason: `apply failed: ${reason}`,
        willRetry: false,
      });
      continue;
    }
    retried.push(input);
    if (goesBehind) plan.moveBehind(input);
  }
  const pauseMs = pauseAfter(runtime, turn);
  plan.onPublish(() => {
    for (const input of retried) {
      input.notBeforeMs = plan.atMs + pauseMs;
      runtime.tellRetry(input, {
        type: "abandoned",
        reason: `apply failed: ${reason}`,
        willRetry: true,
      });
    }
  });
  endTurn(plan, runtime, turn, { type: "completedWithoutResult" });
  environment.logger.warn({ sessionId: runtime.id, turnId: turn.id, reason }, "turn failed");
  await runtime.commit(plan);
}

/** A cancelled turn gives its inputs up. The executor's signal is aborted after the commit. */
export async function cancelTurn(runtime: SessionRuntime, turn: LiveTurn): Promise<void> {
  await runtime.refreshEndedKeys();
  const plan = runtime.plan();
  plan.moveTurn(turn, { type: "cancel", at: plan.at });
  for (const input of turn.inputs) {
    plan.moveInput(input, { type: "abandon", at: plan.at, reason: { code: "cancelled" } });
  }
  endTurn(plan, runtime, turn, { type: "completedWithoutResult" });
  await runtime.commit(plan);
}

/** A turn that the session's own end cuts off: its inputs wait again and no attempt is counted. */
export async function interruptTurn(
  runtime: SessionRuntime,
  turn: LiveTurn,
  reason: string,
): Promise<void> {
  const plan = runtime.plan();
  plan.moveTurn(turn, { type: "interrupt", at: plan.at, reason });
  for (const input of turn.inputs) plan.moveInput(input, { type: "requeue", at: plan.at });
  endTurn(plan, runtime, turn, { type: "completedWithoutResult" });
  await runtime.commit(plan);
}

/** `begin` is written with the first commit after it, so that calling the executor costs none. */
export function beginTurn(plan: SessionPlan, turn: LiveTurn): void {
  if (plan.state(turn.actor as never) !== "staged") return;
  plan.moveTurn(turn, { type: "begin", at: turn.begunAt ?? plan.at });
}

/** `rest` is for waiters of inputs that were consumed before the end. */
export function endTurn(
  plan: SessionPlan,
  { state }: SessionRuntime,
  turn: LiveTurn,
  rest: Completion,
): void {
  plan.moveSession({ type: "turn.ended", turnId: turn.id });
  plan.onPublish(() => {
    assert(state.turn === turn, "the turn that ends is the one in progress");
    letGo(turn, rest);
  });
}

/** What follows from the end of a turn, once it is durable. */
export function letGo(turn: LiveTurn, rest: Completion): void {
  turn.tellDeferred(rest);
  turn.steer(false);
  turn.actor.stop();
}

/** Doubles with each attempt, from the shortest to the longest pause, less up to a quarter. */
function pauseAfter({ environment }: SessionRuntime, turn: LiveTurn): number {
  const { limits, random } = environment;
  const attempts = Math.max(...turn.inputs.map((input) => input.actor.context.attempts));
  const pauseMs = Math.min(limits.retryPauseMaxMs, limits.retryPauseMinMs * 2 ** (attempts - 1));
  return Math.ceil(pauseMs * (1 - random() / 4));
}

/** A turn whose executor never began, within the bound: its inputs are given up. */
export async function expireTurn(runtime: SessionRuntime, turn: LiveTurn): Promise<void> {
  await runtime.refreshEndedKeys();
  const plan = runtime.plan();
  plan.moveTurn(turn, { type: "expire", at: plan.at });
  for (const input of turn.inputs) {
    plan.moveInput(input, { type: "abandon", at: plan.at, reason: { code: "neverExecuted" } });
  }
  endTurn(plan, runtime, turn, { type: "completedWithoutResult" });
  await runtime.commit(plan);
}
