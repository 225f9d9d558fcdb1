/**
 * The plans of a turn: staging, the boundary that consumes its inputs, failure, cancel and
 * interruption. Each is one commit. The executor is called elsewhere, outside every lock.
 */
import { assert, ValidationError } from "../errors.js";
import { checkJson } from "../store/json.js";
import type { JsonValue } from "../store/port.js";
import type { TurnResult } from "./executors/executor.js";
import type { InputPayload } from "./input.js";
import type { LiveInput } from "./live-input.js";
import { LiveTurn } from "./live-turn.js";
import { type BoundaryReceipt, keys, type Message } from "./records.js";
import type { SessionRuntime } from "./runtime.js";
import type { SessionPlan } from "./session-plan.js";
import { completionOfResult } from "./stored-completion.js";

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
      boundary: first.boundary,
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

/** A turn's answer, checked: everything in it can be stored. */
export interface CheckedResult {
  readonly messages: readonly Message[];
  readonly result: JsonValue | undefined;
  readonly callback: TurnResult["callback"];
}

/**
 * Checks what an executor answered, so that a bad answer is a failed attempt and not a failed commit.
 * @throws ValidationError
 */
export function checkResult(value: TurnResult): CheckedResult {
  if (typeof value !== "object" || value === null) {
    throw new ValidationError("executor's answer", [
      { path: "", found: String(value), expected: "an object" },
    ]);
  }
  const { messages = [], result, callback } = value;
  if (!Array.isArray(messages)) {
    throw new ValidationError("executor's answer", [
      { path: "/messages", found: typeof messages, expected: "an array" },
    ]);
  }
  checkJson({ messages, result: result ?? null, callback: callback ?? null });
  return { messages, result, callback };
}

/**
 * The boundary of a turn that succeeded: receipt, transcript, consumed inputs, the ended turn and
 * the session back where it was, in one commit.
 */
export async function completeTurn(
  runtime: SessionRuntime,
  turn: LiveTurn,
  answer: CheckedResult,
): Promise<void> {
  await runtime.refreshEndedKeys();
  const plan = runtime.plan();
  beginTurn(plan, turn);
  const receipt = plan.context(turn.actor).boundaries;
  plan.moveTurn(turn, { type: "boundary.reached", at: plan.at, sequence: receipt });
  if (answer.callback === undefined) {
    plan.moveTurn(turn, { type: "complete", at: plan.at }, answer.result);
  } else {
    const { tool, args } = answer.callback;
    plan.moveTurn(turn, { type: "awaitCallback", at: plan.at, tool }, args);
  }
  for (const input of turn.inputs) {
    plan.moveInput(input, { type: "apply", at: plan.at, turnId: turn.id });
    plan.moveInput(input, { type: "awaitConsumption", at: plan.at, sequence: receipt });
    plan.moveInput(input, { type: "consume", at: plan.at });
    plan.tell(
      input,
      answer.callback === undefined
        ? completionOfResult(answer.result)
        : { type: "callbackPending", ...answer.callback },
    );
  }
  plan.addMessages([...turn.inputs.flatMap(messageOf), ...answer.messages], {
    turnId: turn.id,
    receipt,
  });
  const row: BoundaryReceipt = {
    turnId: turn.id,
    sequence: receipt,
    boundary: turn.actor.context.boundary,
    inputIds: turn.inputs.map((input) => input.id),
    digest: plan.ledger.digest,
    messages: plan.ledger.messages,
    at: plan.at,
  };
  plan.put(keys.receipt(runtime.id, turn.id, receipt), row as unknown as JsonValue);
  endTurn(plan, runtime, turn);
  await runtime.commit(plan);
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
  endTurn(plan, runtime, turn);
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
  endTurn(plan, runtime, turn);
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
  endTurn(plan, runtime, turn);
  await runtime.commit(plan);
}

/** `begin` is written with the first commit after it, so that calling the executor costs none. */
function beginTurn(plan: SessionPlan, turn: LiveTurn): void {
  if (plan.state(turn.actor as never) !== "staged") return;
  plan.moveTurn(turn, { type: "begin", at: turn.begunAt ?? plan.at });
}

function endTurn(plan: SessionPlan, { state }: SessionRuntime, turn: LiveTurn): void {
  plan.moveSession({ type: "turn.ended", turnId: turn.id });
  plan.onPublish(() => {
    assert(state.turn === turn, "the turn that ends is the one in progress");
    turn.actor.stop();
  });
}

/** Doubles with each attempt, from the shortest to the longest pause, less up to a quarter. */
function pauseAfter({ environment }: SessionRuntime, turn: LiveTurn): number {
  const { limits, random } = environment;
  const attempts = Math.max(...turn.inputs.map((input) => input.actor.context.attempts));
  const pauseMs = Math.min(limits.retryPauseMaxMs, limits.retryPauseMinMs * 2 ** (attempts - 1));
  return Math.ceil(pauseMs * (1 - random() / 4));
}

/** What an input says to the conversation. Inputs whose policy or sender keeps them out say nothing. */
function messageOf(input: LiveInput): Message[] {
  if (!input.header.visibility.transcript || !input.policy.decision.transcript) return [];
  return [
    {
      role: "user",
      inputId: input.id,
      content: contentOf(input.payload),
      ...("blocks" in input.payload && input.payload.blocks !== undefined
        ? { blocks: input.payload.blocks as unknown as JsonValue }
        : {}),
    },
  ];
}

function contentOf(payload: InputPayload): JsonValue {
  switch (payload.kind) {
    case "prompt":
      return payload.text;
    case "peer":
      return payload.body;
    case "flowStep":
      return payload.instructions;
    case "externalEvent":
      return { eventType: payload.eventType, payload: payload.payload };
    case "continuation":
      return payload.reason;
    case "operation":
      return payload.event;
  }
}
