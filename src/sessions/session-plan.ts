/**
 * A plan of one session: the moves of its runtime, inputs and turn, the rows that follow from them,
 * and what its waiters will hear. It adds to the kernel's plan what every move of a session shares,
 * so that no row can be forgotten.
 */
import { createHash } from "node:crypto";
import type { InputEvent, inputMachine } from "../../machines/input.js";
import type { SessionEvent } from "../../machines/session.js";
import type { TurnEvent } from "../../machines/turn.js";
import type { DurableActor } from "../kernel/actor.js";
import { isoInstant } from "../kernel/clock.js";
import { journalPlan } from "../kernel/journal.js";
import { Plan } from "../kernel/plan.js";
import { encodeSnapshot } from "../kernel/xstate.js";
import type { Limits } from "../limits.js";
import type { JsonObject, JsonValue, Key } from "../store/port.js";
import type { Completion } from "./completion.js";
import { type InputHeader, payloadDigest } from "./input.js";
import type { LiveInput } from "./live-input.js";
import type { LiveTurn } from "./live-turn.js";
import {
  type BoundaryReceipt,
  encodeSessionSnapshot,
  type InputRecord,
  type KeyRecord,
  keys,
  type Ledger,
  type Message,
  type TranscriptEntry,
} from "./records.js";
import type { SessionState } from "./session-state.js";

/** Expired keys that each ended input with a key may remove: more than one, so that they get fewer. */
const EXPIRED_KEYS_PER_END = 4;

export class SessionPlan extends Plan {
  ledger: Ledger;
  metadata: JsonObject;
  readonly #state: SessionState;
  readonly #inputs = new Set<LiveInput>();
  readonly #positions = new Map<LiveInput, number>();
  readonly #turns = new Map<LiveTurn, JsonValue | undefined>();
  readonly #completions = new Map<LiveInput, Completion>();
  readonly #deferrals = new Map<LiveInput, LiveTurn>();
  readonly #admitted: LiveInput[] = [];
  #expired = 0;
  #forgotten: number | undefined;

  constructor(state: SessionState, options: { readonly operation: string; readonly atMs: number }) {
    super(options);
    this.#state = state;
    this.ledger = state.ledger;
    this.metadata = state.metadata;
  }

  get at(): string {
    return isoInstant(this.atMs);
  }

  moveSession(event: SessionEvent): void {
    this.move(this.#state.actor, event);
  }

  takeSequence(): number {
    const { nextInput } = this.ledger;
    this.ledger = { ...this.ledger, nextInput: nextInput + 1 };
    return nextInput;
  }

  /** Adds an input that this plan admits; it becomes known when the plan is published. */
  admit(input: LiveInput): void {
    this.#admitted.push(input);
    this.#inputs.add(input);
  }

  moveInput(input: LiveInput, event: InputEvent): void {
    this.move(input.actor, event);
    this.#inputs.add(input);
  }

  /** Sends an input behind everything that waits. */
  moveBehind(input: LiveInput): void {
    this.#positions.set(input, this.takePosition());
  }

  takePosition(): number {
    const { nextPosition } = this.ledger;
    this.ledger = { ...this.ledger, nextPosition: nextPosition + 1 };
    return nextPosition;
  }

  moveTurn(turn: LiveTurn, event: TurnEvent, result?: JsonValue): void {
    this.move(turn.actor, event);
    this.touchTurn(turn, result);
  }

  touchTurn(turn: LiveTurn, result?: JsonValue): void {
    this.#turns.set(turn, result ?? this.#turns.get(turn));
  }

  /** What waiters of an input hear when this plan is published, instead of its bare outcome. */
  tell(input: LiveInput, completion: Completion): void {
    this.#completions.set(input, completion);
  }

  /** Waiters of an input that ends here hear how its turn ends. */
  tellWithTurn(input: LiveInput, turn: LiveTurn): void {
    this.#deferrals.set(input, turn);
  }

  /** The turn whose end waiters of an ended input wait for. */
  deferralOf(input: LiveInput): LiveTurn | undefined {
    return this.#deferrals.get(input);
  }

  completionOf(input: LiveInput): Completion | undefined {
    return this.#completions.get(input);
  }

  /** Adds messages to the conversation, as one entry of the transcript. */
  addMessages(messages: readonly Message[], source: Omit<TranscriptEntry, "messages">): void {
    if (messages.length === 0) return;
    let { digest } = this.ledger;
    for (const message of messages) {
      digest = createHash("sha256").update(digest).update(JSON.stringify(message)).digest("hex");
    }
    const sequence = this.ledger.nextTranscript;
    this.put(keys.transcriptEntry(this.#state.id, sequence), { ...source, messages });
    this.ledger = {
      ...this.ledger,
      nextTranscript: sequence + 1,
      messages: this.ledger.messages + messages.length,
      digest,
    };
  }

  addReceipt(receipt: BoundaryReceipt): void {
    const key = keys.receipt(this.#state.id, receipt.turnId, receipt.sequence);
    this.put(key, receipt as unknown as JsonValue);
  }

  isEnded(input: LiveInput): boolean {
    return this.isFinal(input.actor as DurableActor<typeof inputMachine>);
  }

  /**
   * Turns the moves into rows and returns the key that proves the plan. Nothing may be added
   * afterwards.
   */
  seal(limits: Limits): Key {
    const { id } = this.#state;
    for (const input of this.#inputs) this.#writeInput(input, limits);
    for (const [turn, result] of this.#turns) {
      this.put(keys.turn(id, turn.id), {
        snapshot: encodeSnapshot(this.snapshot(turn.actor)) as unknown as JsonValue,
        ...(result === undefined ? {} : { result }),
      });
    }
    this.#writeActive();
    const proof = journalPlan(this, {
      owner: keys.session(id),
      sequence: this.ledger.nextMove,
      kept: limits.journalMovesMax,
    });
    this.ledger = { ...this.ledger, nextMove: this.ledger.nextMove + 1 };
    this.put(keys.session(id), {
      snapshot: encodeSessionSnapshot(
        encodeSnapshot(this.snapshot(this.#state.actor)),
      ) as unknown as JsonValue,
      ledger: this.ledger as unknown as JsonValue,
      metadata: this.metadata,
      createdAt: this.#state.createdAt,
      updatedAt: this.at,
    });
    this.onPublish(() => this.#adopt());
    return proof;
  }

  #writeInput(input: LiveInput, limits: Limits): void {
    const { id } = this.#state;
    const position = this.#positions.get(input) ?? input.position;
    this.put(
      keys.input(id, input.sequence),
      input.record(encodeSnapshot(this.snapshot(input.actor)), position, this.at),
    );
    const { idempotencyKey } = input.header;
    const isEnded = this.isEnded(input);
    const isNew = this.#admitted.includes(input);
    if (isNew) this.put(keys.inputId(id, input.id), { sequence: input.sequence });
    if (idempotencyKey !== undefined && (isEnded || isNew)) {
      const row: KeyRecord = {
        inputId: input.id,
        sequence: input.sequence,
        digest: input.digest,
        ...(isEnded ? { endedAtMs: this.atMs, endedSequence: this.ledger.nextEndedKey } : {}),
      };
      this.put(keys.idempotency(id, idempotencyKey), row as unknown as JsonValue);
      if (isEnded) this.#rememberEndedKey(idempotencyKey, limits);
    }
  }

  /** Keys of ended inputs are kept by count and by age; the oldest leave in the same commit. */
  #rememberEndedKey(key: string, limits: Limits): void {
    const { id, oldestEndedKeys } = this.#state;
    const sequence = this.ledger.nextEndedKey;
    this.put(keys.endedKey(id, sequence), { key, endedAtMs: this.atMs });
    let { endedKeys } = this.ledger;
    endedKeys += 1;
    for (const oldest of oldestEndedKeys.slice(
      this.#expired,
      this.#expired + EXPIRED_KEYS_PER_END,
    )) {
      const isTooMany = endedKeys > limits.endedKeysMax;
      const isTooOld = oldest.endedAtMs + limits.endedKeyAgeMaxMs < this.atMs;
      if (!isTooMany && !isTooOld) break;
      this.delete(keys.endedKey(id, oldest.sequence));
      this.delete(keys.idempotency(id, oldest.key));
      this.#expired += 1;
      endedKeys -= 1;
    }
    this.ledger = { ...this.ledger, endedKeys, nextEndedKey: sequence + 1 };
  }

  /** Writes the index row of an input's idempotency key where there is none yet. */
  indexKey(input: InputRecord, { isEnded }: { readonly isEnded: boolean }): void {
    const { idempotencyKey } = input.header;
    if (idempotencyKey === undefined) return;
    const endedAtMs = Date.parse(input.updatedAt);
    const row: KeyRecord = {
      inputId: input.id,
      sequence: input.sequence,
      digest: payloadDigest(input.payload),
      ...(isEnded ? { endedAtMs, endedSequence: this.ledger.nextEndedKey } : {}),
    };
    this.put(keys.idempotency(this.#state.id, idempotencyKey), row as unknown as JsonValue);
    if (!isEnded) return;
    this.put(keys.endedKey(this.#state.id, this.ledger.nextEndedKey), {
      key: idempotencyKey,
      endedAtMs,
    });
    this.ledger = {
      ...this.ledger,
      endedKeys: this.ledger.endedKeys + 1,
      nextEndedKey: this.ledger.nextEndedKey + 1,
    };
  }

  /** Empties the row of an input that did not outlive its process, and removes its indexes. */
  forget(sequence: number, { id: inputId, idempotencyKey }: InputHeader): void {
    const { id } = this.#state;
    this.put(keys.input(id, sequence), { sequence, isForgotten: true });
    this.delete(keys.inputId(id, inputId));
    if (idempotencyKey !== undefined) this.delete(keys.idempotency(id, idempotencyKey));
  }

  /** Writes the active row where live work remains, whether or not it is there already. */
  keepActive(): void {
    if (this.#firstActive() !== undefined)
      this.put(keys.active(this.#state.id), { since: this.at });
  }

  /** Takes the key of an ended input out of the order of ends, since a new input is to have it. */
  forgetEndedKey(row: KeyRecord): void {
    if (row.endedSequence === undefined) return;
    this.delete(keys.endedKey(this.#state.id, row.endedSequence));
    this.ledger = { ...this.ledger, endedKeys: this.ledger.endedKeys - 1 };
    this.#forgotten = row.endedSequence;
  }

  /** The row that says a session has live work is there exactly while it has. */
  #writeActive(): void {
    const { id, inputs } = this.#state;
    const hadWork = inputs.size > 0;
    const first = this.#firstActive();
    const before = this.#admitted.length + inputs.size;
    const unfinished = before - [...this.#inputs].filter((input) => this.isEnded(input)).length;
    this.ledger = { ...this.ledger, firstActive: first ?? this.ledger.nextInput, unfinished };
    const hasWork = first !== undefined;
    if (hasWork && !hadWork) this.put(keys.active(id), { since: this.at });
    if (!hasWork && hadWork) this.delete(keys.active(id));
  }

  /** Inputs are in the order of their sequence, so this looks at no more than those that end here. */
  #firstActive(): number | undefined {
    for (const input of this.#state.inputs.values()) {
      if (!this.isEnded(input)) return input.sequence;
    }
    for (const input of this.#admitted) {
      if (!this.isEnded(input)) return input.sequence;
    }
    return undefined;
  }

  #adopt(): void {
    const state = this.#state;
    state.ledger = this.ledger;
    state.metadata = this.metadata;
    for (const [input, position] of this.#positions) input.position = position;
    for (const input of this.#admitted) {
      state.inputs.set(input.id, input);
      state.inputOfActor.set(input.actor.id, input);
    }
    for (const input of this.#inputs) {
      input.updatedAt = this.at;
      if (this.isEnded(input)) state.inputs.delete(input.id);
    }
    state.oldestEndedKeys = state.oldestEndedKeys
      .slice(this.#expired)
      .filter((ended) => ended.sequence !== this.#forgotten);
  }
}
