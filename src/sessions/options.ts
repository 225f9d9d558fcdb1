/** What a host says of a session when it opens it. */
import type { JsonObject } from "../store/port.js";
import type { ExecutorSource } from "./executors/executor.js";
import type { SessionSchemas } from "./schema.js";

export interface SessionOptions {
  readonly executor?: ExecutorSource | undefined;
  /**
   * Kept with the session and given to its executor; what is stored stays where none is given. With
   * `keepAlive: true` in it the session stays in memory without work.
   */
  readonly metadata?: JsonObject | undefined;
  /** Checks of inputs and results. They belong to this process and are not stored. */
  readonly schemas?: SessionSchemas | undefined;
  /** Intents of peer requests that do not wake the session. Only a new session takes them. */
  readonly silentIntents?: readonly string[] | undefined;
}
