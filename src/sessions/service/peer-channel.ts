/**
 * A channel between sessions of one process: what one peer sends becomes an input of the other,
 * durable before it is acknowledged. Keep-alive is a matter of the channel: it decides whether the
 * receiving session stays in memory, and does not touch what its metadata says.
 */
import { NotFoundError } from "../../errors.js";
import type { JsonValue } from "../../store/port.js";
import type { Admission } from "../admission.js";
import type { Session } from "../handle.js";
import type { PeerConvention } from "../input.js";

export interface PeerMessage {
  readonly from: string;
  readonly to: string;
  readonly body: string;
  readonly convention?: PeerConvention;
  readonly payload?: JsonValue;
  readonly idempotencyKey?: string;
}

export interface PeerIngress {
  /** Whether the session stays in memory while nothing is to be done. */
  readonly keepAlive: boolean;
}

export class PeerChannel {
  readonly #members = new Map<string, Session>();

  /** Names a session as a peer. Joining again under the same name replaces it. */
  join(peerId: string, session: Session): void {
    this.#members.set(peerId, session);
  }

  leave(peerId: string): void {
    this.#members.delete(peerId);
  }

  /** @throws NotFoundError no such peer has joined */
  configure(peerId: string, { keepAlive }: PeerIngress): void {
    this.#member(peerId).configureIngress({ keepAlive });
  }

  /**
   * Delivers one message. Its sender is stated as the origin, by the name under which it joined.
   * @throws NotFoundError one of the two has not joined; otherwise as `Session.accept`
   */
  async send(message: PeerMessage): Promise<Admission> {
    const { from, to, body, convention, payload, idempotencyKey } = message;
    this.#member(from);
    return this.#member(to).accept({
      kind: "peer",
      body,
      origin: { type: "peer", peerId: from, displayIdentity: from },
      ...(convention === undefined ? {} : { convention }),
      ...(payload === undefined ? {} : { payload }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
  }

  #member(peerId: string): Session {
    const session = this.#members.get(peerId);
    if (session === undefined) throw new NotFoundError("peer", peerId);
    return session;
  }
}
