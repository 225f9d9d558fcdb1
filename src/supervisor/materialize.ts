/**
 * Materialising a session: its id is prepared here, the host's service creates its own side under
 * that id, and only then is the executor made. Whatever fails, the prepared id is let go and the
 * error comes out as it was.
 */
import { ConflictError, SessionIdMismatchError } from "../errors.js";
import type { ExecutorSource } from "../sessions/executors/executor.js";
import type { Session } from "../sessions/handle.js";
import {
  type CreateSessionRequest,
  type SessionService,
  serviceExecutor,
} from "../sessions/service/service.js";
import type { Registry } from "./registry.js";
import type { Sessions } from "./sessions.js";

export interface MaterializeOptions {
  /** Id of the session. One is made where none is given. */
  readonly session?: string;
  readonly service: SessionService;
  readonly request?: Omit<CreateSessionRequest, "sessionId">;
  /** Made only once the service has created the session. Default: turns of the service. */
  readonly executor?: (sessionId: string) => ExecutorSource;
}

export async function materialize(
  sessions: Sessions,
  registry: Registry,
  { session: id, service, request = {}, executor }: MaterializeOptions,
): Promise<Session> {
  if (id !== undefined && registry.has(id)) {
    throw new ConflictError("session", id, "it is open in this supervisor");
  }
  const session = await sessions.open(id);
  try {
    const created = await service.create({ ...request, sessionId: session.id });
    if (created.sessionId !== session.id) {
      throw new SessionIdMismatchError(session.id, created.sessionId);
    }
    const unregister = (sessionId: string) => registry.unregister(sessionId);
    return await sessions.open(session.id, {
      executor: executor?.(session.id) ?? serviceExecutor(session.id, { service, unregister }),
    });
  } catch (error) {
    await registry.abandon(session.id);
    throw error;
  }
}
