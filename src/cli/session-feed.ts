/**
 * Lines into a session, one after the other. A line that is at fault is reported with its number and
 * the rest goes on; a session that is full is waited for; a store that fails ends the command.
 */
import { CapacityError, isHoldfastError } from "../errors.js";
import type { Session } from "../sessions/handle.js";
import type { InputRequest } from "../sessions/input.js";
import { UsageError } from "./cli-errors.js";
import type { FollowedInputs } from "./followed-inputs.js";
import type { Line } from "./input-lines.js";
import { type LineDefaults, requestOfLine } from "./line-request.js";
import type { Output } from "./output.js";
import { plainId } from "./plain-text.js";

/** Faults of one line. Every other one is a fault of the session or the store. */
const ofLine = new Set(["ValidationError", "IdempotencyConflictError", "ConflictError"]);

export class SessionFeed {
  accepted = 0;
  deduplicated = 0;
  /** Lines that did not become inputs. */
  refused = 0;
  readonly #session: Session;
  readonly #inputs: FollowedInputs;
  readonly #output: Output;
  readonly #defaults: LineDefaults;

  constructor(parts: {
    readonly session: Session;
    readonly inputs: FollowedInputs;
    readonly output: Output;
    readonly defaults: LineDefaults;
  }) {
    this.#session = parts.session;
    this.#inputs = parts.inputs;
    this.#output = parts.output;
    this.#defaults = parts.defaults;
  }

  /** @throws HoldfastError the session or its store takes nothing more */
  async take(lines: AsyncIterable<Line>, stop: AbortSignal): Promise<void> {
    try {
      for await (const line of lines) {
        if (stop.aborted) return;
        if ("fault" in line) await this.#refuse(line.number, line.fault);
        else await this.#takeLine(line, stop);
      }
    } catch (error) {
      // Reading that was ended on purpose ends with an error too.
      if (stop.aborted) return;
      if (isHoldfastError(error)) throw error;
      const { code } = error as NodeJS.ErrnoException;
      throw code === undefined
        ? error
        : new UsageError(`The lines cannot be read (${code}).`, error);
    }
  }

  async #takeLine(
    line: { readonly number: number; readonly text: string },
    stop: AbortSignal,
  ): Promise<void> {
    try {
      await this.#admit(line.number, requestOfLine(line, this.#defaults), stop);
    } catch (error) {
      if (!isHoldfastError(error) || !ofLine.has(error._tag)) {
        this.#output.remark(`Line ${line.number} and those after it were not admitted.`);
        throw error;
      }
      await this.#refuse(line.number, error);
    }
  }

  async #admit(line: number, request: InputRequest, stop: AbortSignal): Promise<void> {
    const { idempotencyKey } = request;
    const key = idempotencyKey === undefined ? {} : { idempotencyKey };
    const admission = await this.#acceptWithRoom(request, stop);
    if (admission === undefined) return;
    const { inputId } = admission;
    switch (admission.outcome) {
      case "accepted":
        this.accepted += 1;
        await this.#output.print({ type: "accepted", line, inputId, ...key }, undefined);
        this.#inputs.follow({ inputId, line, ...key }, admission.completion);
        break;
      case "deduplicated": {
        this.deduplicated += 1;
        const { existingId, state } = admission;
        await this.#output.print(
          { type: "deduplicated", line, inputId, existingId, ...key, state },
          `known      line ${line}  ${plainId(idempotencyKey ?? inputId)}  is input ${plainId(existingId)}, ${state}`,
        );
        break;
      }
      case "rejected":
        await this.#refuse(line, admission.reason, { inputId, ...key });
    }
  }

  /** Waits while the session is full. `undefined`: stopped before there was room. */
  async #acceptWithRoom(request: InputRequest, stop: AbortSignal) {
    while (!stop.aborted) {
      try {
        return await this.#session.accept(request);
      } catch (error) {
        const mayWait = error instanceof CapacityError && this.#inputs.isWorking;
        if (!mayWait) throw error;
        await this.#inputs.room();
      }
    }
    return undefined;
  }

  async #refuse(line: number, fault: unknown, ids: object = {}): Promise<void> {
    this.refused += 1;
    const error = isHoldfastError(fault) ? { code: fault.code } : {};
    const reason = fault instanceof Error ? fault.message : String(fault);
    const existing =
      isHoldfastError(fault) && "existingId" in fault ? { existingId: fault.existingId } : {};
    this.#output.fault(fault, `line ${line}: `);
    await this.#output.print(
      { type: "rejected", line, ...ids, ...existing, ...error, reason },
      undefined,
    );
  }
}
