/** What an executor is given: the turn's inputs, the conversation, and what it may ask for meanwhile. */
import { NotReadyError } from "../errors.js";
import { checkpointTurn } from "./boundaries.js";
import type { TranscriptReader, TurnInputView, TurnRequest } from "./executors/executor.js";
import type { LiveInput } from "./live-input.js";
import type { LiveTurn } from "./live-turn.js";
import { keys, type Message, type TranscriptEntry } from "./records.js";
import type { SessionRuntime } from "./runtime.js";
import { checkAnswer } from "./turn-answer.js";

export function requestOf(runtime: SessionRuntime, turn: LiveTurn): TurnRequest {
  const inputs = turn.inputs.map(inputView);
  return {
    turnId: turn.id,
    sessionId: runtime.id,
    inputs,
    transcript: transcriptOf(runtime),
    context: runtime.state.metadata,
    attempt: Math.max(...inputs.map((input) => input.attempt)),
    signal: turn.controller.signal,
    steered: () => turn.steered(isSteered(runtime)),
    checkpoint: ({ messages = [] } = {}) => checkpoint(runtime, turn, messages),
  };
}

function inputView(input: LiveInput): TurnInputView {
  return {
    inputId: input.id,
    sequence: input.sequence,
    attempt: input.actor.context.attempts,
    header: input.header,
    payload: input.payload,
  };
}

function isSteered({ state, environment }: SessionRuntime): boolean {
  return state.lanes.steering(environment.clock.nowMs()).some((input) => input.drives);
}

async function checkpoint(
  runtime: SessionRuntime,
  turn: LiveTurn,
  given: readonly Message[],
): Promise<readonly TurnInputView[]> {
  const { messages } = checkAnswer({ messages: given });
  turn.checkpoints += 1;
  try {
    return await runtime.operation("reach a checkpoint", async () => {
      if (turn.hasEnded) {
        throw new NotReadyError(runtime.id, runtime.state.actor.state, "reach a checkpoint");
      }
      return (await checkpointTurn(runtime, turn, messages)).map(inputView);
    });
  } finally {
    turn.checkpoints -= 1;
  }
}

function transcriptOf(runtime: SessionRuntime): TranscriptReader {
  const { store } = runtime.environment;
  return {
    messages: runtime.state.ledger.messages,
    entries: runtime.state.ledger.nextTranscript,
    list: async ({ after, limit = 100 } = {}) => {
      const page = await store.list({
        prefix: keys.transcript(runtime.id),
        after: after === undefined ? undefined : keys.transcriptEntry(runtime.id, after),
        limit,
      });
      return page.records.map((record) => record.value as unknown as TranscriptEntry);
    },
  };
}
