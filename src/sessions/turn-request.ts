/** What an executor is given: the turn's inputs, the conversation, and what it may ask for meanwhile. */
import { NotReadyError } from "../errors.js";
import { checkpointTurn } from "./boundaries.js";
import type { TranscriptReader, TurnInputView, TurnRequest } from "./executors/executor.js";
import { hydrate, hydrateEntry } from "./images.js";
import type { LiveInput } from "./live-input.js";
import type { LiveTurn } from "./live-turn.js";
import { keys, type Message, type TranscriptEntry } from "./records.js";
import type { SessionRuntime } from "./runtime.js";
import { checkAnswer } from "./turn-answer.js";

/** @throws NotFoundError | CorruptionError an image of an input cannot be had */
export async function requestOf(runtime: SessionRuntime, turn: LiveTurn): Promise<TurnRequest> {
  const inputs = await inputViews(runtime, turn.inputs);
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

async function inputViews(
  { environment: { blobs } }: SessionRuntime,
  inputs: readonly LiveInput[],
): Promise<readonly TurnInputView[]> {
  const views: TurnInputView[] = [];
  for (const input of inputs) {
    views.push({
      inputId: input.id,
      sequence: input.sequence,
      attempt: input.actor.context.attempts,
      header: input.header,
      payload: await hydrate(blobs, input.payload),
    });
  }
  return views;
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
    const joined = await runtime.operation("reach a checkpoint", async () => {
      if (turn.hasEnded) {
        throw new NotReadyError(runtime.id, runtime.state.actor.state, "reach a checkpoint");
      }
      return checkpointTurn(runtime, turn, messages);
    });
    return await inputViews(runtime, joined);
  } finally {
    turn.checkpoints -= 1;
  }
}

function transcriptOf(runtime: SessionRuntime): TranscriptReader {
  const { store, blobs } = runtime.environment;
  return {
    messages: runtime.state.ledger.messages,
    entries: runtime.state.ledger.nextTranscript,
    list: async ({ after, limit = 100 } = {}) => {
      const page = await store.list({
        prefix: keys.transcript(runtime.id),
        after: after === undefined ? undefined : keys.transcriptEntry(runtime.id, after),
        limit,
      });
      const entries = page.records.map((record) => record.value as unknown as TranscriptEntry);
      return Promise.all(entries.map((entry) => hydrateEntry(blobs, entry)));
    },
  };
}
