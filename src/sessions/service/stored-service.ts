/**
 * A session service without a model of its own: the conversation is the transcript in the store, the
 * settings are the session's metadata, and a function of the host answers. What it holds in memory
 * can be discarded at any time and comes back with the next turn.
 */
import {
  NotFoundError,
  NotReadyError,
  ValidationError,
  type ValidationIssue,
} from "../../errors.js";
import type { JsonObject } from "../../store/port.js";
import type { TurnInputView, TurnRequest, TurnResult } from "../executors/executor.js";
import type { Session } from "../handle.js";
import type { SessionOptions } from "../options.js";
import type { CreateSessionRequest, SessionService } from "./service.js";

/** What an answering function is given: the turn, and what the service adds. */
export interface RespondRequest extends TurnRequest {
  readonly system: string | undefined;
  /** Inputs of peers in this turn that are to be shown in full; the others are only counted. */
  readonly notifications: {
    readonly inline: readonly TurnInputView[];
    readonly withheld: number;
  };
}

/** What the service needs of a supervisor's sessions. */
export interface SessionHost {
  open(id: string, options?: SessionOptions): Promise<Session>;
  get(id: string): Promise<Session>;
}

interface LiveSession {
  readonly system: string | undefined;
  readonly maxInline: number;
  /** Of the turn in progress. */
  controller: AbortController | undefined;
}

export class StoredSessionService implements SessionService {
  readonly #host: SessionHost;
  readonly #respond: (request: RespondRequest) => TurnResult | Promise<TurnResult>;
  readonly #live = new Map<string, LiveSession>();

  constructor(options: {
    readonly sessions: SessionHost;
    readonly respond: (request: RespondRequest) => TurnResult | Promise<TurnResult>;
  }) {
    this.#host = options.sessions;
    this.#respond = options.respond;
  }

  /** @throws ValidationError a setting is not acceptable; nothing was written */
  async create(request: CreateSessionRequest): Promise<{ readonly sessionId: string }> {
    requireSettings(request);
    const { sessionId, system, keepAlive, maxInlinePeerNotifications } = request;
    const metadata: JsonObject = {
      ...request.metadata,
      ...(system === undefined ? {} : { system }),
      ...(keepAlive === undefined ? {} : { keepAlive }),
      ...(maxInlinePeerNotifications === undefined ? {} : { maxInlinePeerNotifications }),
    };
    const session = await this.#host.open(sessionId, { metadata });
    this.#live.set(sessionId, liveOf(metadata));
    return { sessionId: session.id };
  }

  async runTurn(request: TurnRequest): Promise<TurnResult> {
    const { sessionId, signal, inputs } = request;
    const live = this.#live.get(sessionId) ?? liveOf(request.context);
    this.#live.set(sessionId, live);
    const controller = new AbortController();
    live.controller = controller;
    const peers = inputs.filter((input) => input.payload.kind === "peer");
    const inline = live.maxInline < 0 ? peers : peers.slice(0, live.maxInline);
    try {
      return await this.#respond({
        ...request,
        signal: AbortSignal.any([signal, controller.signal]),
        system: live.system,
        notifications: { inline, withheld: peers.length - inline.length },
      });
    } finally {
      if (live.controller === controller) live.controller = undefined;
    }
  }

  async interrupt(sessionId: string): Promise<void> {
    const controller = this.#live.get(sessionId)?.controller;
    if (controller === undefined) {
      throw new NotReadyError(sessionId, await this.#stateOf(sessionId), "interrupt a turn");
    }
    controller.abort();
  }

  async discard(sessionId: string): Promise<void> {
    const live = this.#live.get(sessionId);
    this.#live.delete(sessionId);
    live?.controller?.abort();
  }

  /** Whether the session is in this service's memory. */
  isLive(sessionId: string): boolean {
    return this.#live.has(sessionId);
  }

  async #stateOf(sessionId: string): Promise<string> {
    try {
      return (await this.#host.get(sessionId)).state();
    } catch (error) {
      if (error instanceof NotFoundError) return "destroyed";
      throw error;
    }
  }
}

function liveOf(metadata: JsonObject): LiveSession {
  const { system, maxInlinePeerNotifications } = metadata;
  return {
    system: typeof system === "string" ? system : undefined,
    maxInline: typeof maxInlinePeerNotifications === "number" ? maxInlinePeerNotifications : -1,
    controller: undefined,
  };
}

function requireSettings({
  system,
  keepAlive,
  maxInlinePeerNotifications: max,
}: CreateSessionRequest): void {
  const issues: ValidationIssue[] = [];
  if (max !== undefined && !(Number.isSafeInteger(max) && max >= -1)) {
    const expected = `-1, 0 or a larger whole number; ${max} is invalid`;
    issues.push({ path: "/maxInlinePeerNotifications", found: String(max), expected });
  }
  if (system !== undefined && typeof system !== "string") {
    issues.push({ path: "/system", found: typeof system, expected: "a string" });
  }
  if (keepAlive !== undefined && typeof keepAlive !== "boolean") {
    issues.push({ path: "/keepAlive", found: typeof keepAlive, expected: "true or false" });
  }
  if (issues.length > 0) throw new ValidationError("session request", issues);
}
