/** The executor port: the host's code that does a turn. */

import type { JsonObject, JsonValue } from "../../store/port.js";
import type { InputHeader, InputPayload } from "../input.js";
import type { Message, TranscriptEntry } from "../records.js";

export interface TurnInputView {
  readonly inputId: string;
  readonly sequence: number;
  /** Which try of this input this is, from 1. */
  readonly attempt: number;
  readonly header: InputHeader;
  readonly payload: InputPayload;
}

/** The conversation so far, read on demand: a turn costs the same however long it has become. */
export interface TranscriptReader {
  readonly messages: number;
  /** Entries, one a boundary that said anything; the last one has this sequence less one. */
  readonly entries: number;
  list(request?: {
    readonly after?: number;
    readonly limit?: number;
  }): Promise<readonly TranscriptEntry[]>;
}

export interface TurnRequest {
  readonly turnId: string;
  readonly sessionId: string;
  /** One or more, in the order in which they are to be taken. */
  readonly inputs: readonly TurnInputView[];
  readonly transcript: TranscriptReader;
  /** The metadata of the session. */
  readonly context: JsonObject;
  /** The highest attempt among the inputs. Above 1 their effects may already have happened. */
  readonly attempt: number;
  /** Aborted when the turn is cancelled, or cut off because the session ends. */
  readonly signal: AbortSignal;
  /**
   * Resolves with true when something waits that is meant to steer this turn: take it with
   * `checkpoint`. Resolves with false when the turn ends first.
   */
  steered(): Promise<boolean>;
  /**
   * Makes what was done so far durable: the inputs that the turn holds are consumed with a receipt,
   * the messages join the transcript, and what waits to steer the turn becomes its own; all in one
   * commit. Returns what joined. It is to be awaited before `apply` settles.
   * @throws NotReadyError the turn has ended | OperationError the store failed, nothing has changed
   */
  checkpoint(progress?: {
    readonly messages?: readonly Message[];
  }): Promise<readonly TurnInputView[]>;
}

export interface TurnResult {
  /** Added to the transcript after the turn's own inputs, in the same commit. */
  readonly messages?: readonly Message[] | undefined;
  /** What waiters get; kept with the turn. */
  readonly result?: JsonValue | undefined;
  /** The turn ends with an open question to the host, answered by a later input. */
  readonly callback?: { readonly tool: string; readonly args: JsonValue } | undefined;
}

export interface Executor {
  /**
   * Does one turn. It may be called again with the same inputs after a crash or a failure, so
   * effects that must not happen twice go by the input ids. Throwing is a failed attempt.
   */
  apply(request: TurnRequest): Promise<TurnResult>;
  /** Asked in addition to the signal when a turn is cancelled. */
  cancel?(): void | Promise<void>;
  /**
   * Lets go of what the executor holds. After `restart` turns may still come, once the session was
   * built again from the store; after `end` none will.
   */
  stop?(reason?: "end" | "restart"): void | Promise<void>;
}

/** An executor, or what makes one when the session first has work for it. */
export type ExecutorSource = Executor | ((sessionId: string) => Executor | Promise<Executor>);
