/**
 * The port of a host's session service: what creates the host's side of a session (its model, tools,
 * connections) and does its turns. holdfast keeps what is durable; the service may be thrown away
 * and made again.
 */
import type { JsonObject } from "../../store/port.js";
import type { Executor, TurnRequest, TurnResult } from "../executors/executor.js";

/** What a service is asked to create. The id was prepared: the service uses it as it is. */
export interface CreateSessionRequest {
  readonly sessionId: string;
  /** Instructions that stand before the conversation. */
  readonly system?: string;
  /** Whether the session stays in memory without work. */
  readonly keepAlive?: boolean;
  /** Notifications of peers that one turn shows in full: -1 all, 0 none. Default -1. */
  readonly maxInlinePeerNotifications?: number;
  /** Of the host; kept with the session. */
  readonly metadata?: JsonObject;
}

export interface SessionService {
  /** @returns the id under which the session was created: the one that was asked for */
  create(request: CreateSessionRequest): Promise<{ readonly sessionId: string }>;
  /** Does one turn. A session that is not live is made live again first. */
  runTurn(request: TurnRequest): Promise<TurnResult>;
  /** @throws NotReadyError no turn is in progress */
  interrupt(sessionId: string): Promise<void>;
  /** Lets the live session go; one that is not live is a success. What is stored stays. */
  discard(sessionId: string): Promise<void>;
}

/**
 * The executor that does its turns through a service: apply is one turn of it, cancel interrupts it,
 * stop discards the live session and, whatever becomes of that, takes the session out of the
 * supervisor. A restart of the session only discards.
 */
export function serviceExecutor(
  sessionId: string,
  options: {
    readonly service: SessionService;
    readonly unregister: (sessionId: string) => Promise<void>;
  },
): Executor {
  const { service, unregister } = options;
  return {
    apply: (request) => service.runTurn(request),
    cancel: () => service.interrupt(sessionId),
    stop: async (reason) => {
      try {
        await service.discard(sessionId);
      } finally {
        if (reason !== "restart") await unregister(sessionId);
      }
    },
  };
}
