/**
 * The boundaries of a turn: what it holds is consumed, with a receipt that names exactly that, and
 * what was said joins the transcript. At the end of a turn, or within it. Each is one commit.
 */
import type { JsonValue } from "../store/port.js";
import type { Completion } from "./completion.js";
import { contentOf } from "./input-message.js";
import type { LiveInput } from "./live-input.js";
import type { LiveTurn } from "./live-turn.js";
import type { Message } from "./records.js";
import type { SessionRuntime } from "./runtime.js";
import type { SessionPlan } from "./session-plan.js";
import { completionOfResult } from "./stored-completion.js";
import type { CheckedAnswer } from "./turn-answer.js";
import { beginTurn, endTurn } from "./turns.js";

/**
 * The end of a turn that succeeded: receipt, transcript, consumed inputs, the ended turn and the
 * session back where it was, in one commit.
 */
export async function completeTurn(
  runtime: SessionRuntime,
  turn: LiveTurn,
  answer: CheckedAnswer,
): Promise<void> {
  await runtime.refreshEndedKeys();
  const plan = runtime.plan();
  const { callback } = answer;
  const completion: Completion =
    callback === undefined
      ? completionOfResult(answer.result)
      : { type: "callbackPending", ...callback };
  beginTurn(plan, turn);
  reachBoundary(plan, turn, answer.messages, (input) => plan.tell(input, completion));
  if (callback === undefined) plan.moveTurn(turn, { type: "complete", at: plan.at }, answer.result);
  else {
    const { tool, args } = callback;
    plan.moveTurn(turn, { type: "awaitCallback", at: plan.at, tool }, args);
  }
  endTurn(plan, runtime, turn, completion);
  await runtime.commit(plan);
}

/**
 * A boundary within a turn: what it holds is consumed, and what waits to steer it joins, in one
 * commit. Returns what joined; without anything to consume, say or join there is no commit.
 */
export async function checkpointTurn(
  runtime: SessionRuntime,
  turn: LiveTurn,
  messages: readonly Message[],
): Promise<readonly LiveInput[]> {
  const { state, environment } = runtime;
  const joining = state.lanes.steering(environment.clock.nowMs());
  if (turn.inputs.length + messages.length + joining.length === 0) return [];
  await runtime.refreshEndedKeys();
  const plan = runtime.plan();
  beginTurn(plan, turn);
  reachBoundary(plan, turn, messages, (input) => plan.tellWithTurn(input, turn));
  if (joining.length > 0) {
    for (const input of joining) {
      plan.moveInput(input, { type: "stage", at: plan.at, turnId: turn.id });
    }
    const inputIds = joining.map((input) => input.id);
    plan.moveTurn(turn, { type: "inputs.joined", at: plan.at, inputIds });
  }
  plan.onPublish(() => {
    turn.inputs = joining;
  });
  await runtime.commit(plan);
  return joining;
}

/**
 * Consumes what a turn holds, with a receipt that names exactly that. A turn that holds nothing only
 * adds its messages: no receipt is minted for them.
 */
function reachBoundary(
  plan: SessionPlan,
  turn: LiveTurn,
  messages: readonly Message[],
  tell: (input: LiveInput) => void,
): void {
  const { inputs } = turn;
  if (inputs.length === 0) {
    plan.addMessages(messages, { turnId: turn.id, receipt: null });
    plan.touchTurn(turn);
    return;
  }
  const { boundaries, boundary } = plan.context(turn.actor);
  plan.moveTurn(turn, { type: "boundary.reached", at: plan.at, sequence: boundaries });
  for (const input of inputs) {
    plan.moveInput(input, { type: "apply", at: plan.at, turnId: turn.id });
    plan.moveInput(input, { type: "awaitConsumption", at: plan.at, sequence: boundaries });
    plan.moveInput(input, { type: "consume", at: plan.at });
    tell(input);
  }
  const said = [...inputs.flatMap(messageOf), ...messages];
  plan.addMessages(said, { turnId: turn.id, receipt: boundaries });
  plan.addReceipt({
    turnId: turn.id,
    sequence: boundaries,
    boundary: boundaries === 0 ? boundary : "turnCheckpoint",
    inputIds: inputs.map((input) => input.id),
    digest: plan.ledger.digest,
    messages: plan.ledger.messages,
    at: plan.at,
  });
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
