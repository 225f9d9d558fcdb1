/** An input that has not ended, as its session holds it in memory. */
import { type inputMachine, inputMachine as machine } from "../../machines/input.js";
import { type ActorWatch, DurableActor } from "../kernel/actor.js";
import { initialSnapshot, restoreSnapshot, type StoredSnapshot } from "../kernel/xstate.js";
import type { JsonValue } from "../store/port.js";
import { Waiter } from "./completion.js";
import { type InputHeader, type InputPayload, type InputView, payloadDigest } from "./input.js";
import type { LaneItem, LaneName } from "./lanes.js";
import { isSilent, type Policy, replacementScope, type SemanticsStamp } from "./policy.js";
import type { InputRecord } from "./records.js";

interface Parts {
  readonly sequence: number;
  readonly position: number;
  readonly header: InputHeader;
  readonly payload: InputPayload;
  readonly policy: Policy;
  readonly stamp: SemanticsStamp;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** What an input needs to know of its session. */
export interface InputSurroundings {
  readonly sessionId: string;
  readonly silentIntents: readonly string[];
  readonly watch: ActorWatch;
}

export class LiveInput implements LaneItem {
  readonly id: string;
  readonly sequence: number;
  readonly header: InputHeader;
  readonly payload: InputPayload;
  readonly policy: Policy;
  readonly stamp: SemanticsStamp;
  readonly createdAt: string;
  readonly actor: DurableActor<typeof inputMachine>;
  /** See `replacementScope`. */
  readonly scope: string | undefined;
  readonly #isSilent: boolean;
  position: number;
  updatedAt: string;
  /** Set while a failed input pauses; a restart starts without pauses. */
  notBeforeMs = 0;
  waiter = new Waiter();
  #digest: string | undefined;

  private constructor(
    parts: Parts,
    actor: DurableActor<typeof inputMachine>,
    silentIntents: readonly string[],
  ) {
    this.id = parts.header.id;
    this.sequence = parts.sequence;
    this.position = parts.position;
    this.header = parts.header;
    this.payload = parts.payload;
    this.policy = parts.policy;
    this.stamp = parts.stamp;
    this.createdAt = parts.createdAt;
    this.updatedAt = parts.updatedAt;
    this.actor = actor;
    this.scope = replacementScope(parts.payload, parts.header?.supersessionKey);
    this.#isSilent = isSilent(parts.payload, silentIntents);
  }

  /** A new input, at the first state of its chart. */
  static admit(
    parts: Parts,
    options: InputSurroundings & { readonly attemptsMax: number },
  ): LiveInput {
    const actor = new DurableActor({
      id: actorId(options.sessionId, parts.header.id),
      machine,
      snapshot: initialSnapshot(machine, {
        inputId: parts.header.id,
        attemptsMax: options.attemptsMax,
      }),
      watch: options.watch,
    });
    return new LiveInput(parts, actor, options.silentIntents);
  }

  /** An input as its row has it. The row has been checked. */
  static restore(record: InputRecord, options: InputSurroundings): LiveInput {
    const actor = new DurableActor({
      id: actorId(options.sessionId, record.id),
      machine,
      snapshot: restoreSnapshot(machine, record.snapshot),
      watch: options.watch,
    });
    return new LiveInput(record, actor, options.silentIntents);
  }

  get lane(): LaneName {
    return this.policy.decision.route === "steer" ? "steer" : "queue";
  }

  get boundary(): SemanticsStamp["boundary"] {
    return this.stamp.boundary;
  }

  get isPrompt(): boolean {
    return this.payload.kind === "prompt";
  }

  get drives(): boolean {
    const { wake, apply } = this.policy.decision;
    return !this.#isSilent && (wake !== "none" || apply === "turnStart");
  }

  /** What tells two payloads under one idempotency key apart. */
  get digest(): string {
    this.#digest ??= payloadDigest(this.payload);
    return this.#digest;
  }

  /** The row of this input at a planned snapshot and position. */
  record(snapshot: StoredSnapshot, position: number, updatedAt: string): JsonValue {
    const record: InputRecord = {
      id: this.id,
      sequence: this.sequence,
      position,
      snapshot,
      header: this.header,
      payload: this.payload,
      policy: this.policy,
      stamp: this.stamp,
      createdAt: this.createdAt,
      updatedAt,
    };
    return record as unknown as JsonValue;
  }

  view(): InputView {
    return viewOf({
      ...this.#parts(),
      snapshot: { value: this.actor.state, context: this.actor.context as unknown as JsonValue },
    });
  }

  #parts(): Omit<InputRecord, "snapshot"> {
    const { id, sequence, position, header, payload, policy, stamp, createdAt, updatedAt } = this;
    return { id, sequence, position, header, payload, policy, stamp, createdAt, updatedAt };
  }
}

/** What a handle shows of an input, from its row. */
export function viewOf(record: InputRecord): InputView {
  const context = record.snapshot.context as unknown as LiveInput["actor"]["context"];
  return {
    inputId: record.id,
    sequence: record.sequence,
    phase: String(record.snapshot.value),
    kind: record.payload?.kind,
    payload: record.payload,
    header: record.header,
    attempts: context.attempts,
    recoveries: context.recoveries,
    outcome: context.outcome,
    lastTurnId: context.lastTurnId,
    lastBoundarySequence: context.lastBoundarySequence,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
  };
}

function actorId(sessionId: string, inputId: string): string {
  return `session/${sessionId}/input/${inputId}`;
}
