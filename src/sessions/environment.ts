/** What sessions need from outside: the ports of one supervisor. */
import type { BlobStore } from "../blobs/blob-store.js";
import type { ActorWatch } from "../kernel/actor.js";
import type { Clock } from "../kernel/clock.js";
import type { Ids } from "../kernel/ids.js";
import type { Logger } from "../kernel/logger.js";
import type { Limits } from "../limits.js";
import type { StateStore } from "../store/port.js";

export interface Environment {
  readonly store: StateStore;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly limits: Limits;
  readonly logger: Logger;
  readonly watch: ActorWatch;
  /** 0 ≤ n < 1; spreads pauses. */
  readonly random: () => number;
}
