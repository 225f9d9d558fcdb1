/** What an earlier run left: read before the session is opened, since its work may end at once. */
import { listInputs } from "../sessions/handle.js";
import type { InputView } from "../sessions/input.js";
import { requireId } from "../sessions/parse-input.js";
import { decodeSession, keys } from "../sessions/records.js";
import type { StateStore } from "../store/port.js";

const unfinished = new Set([
  "accepted",
  "queued",
  "staged",
  "applied",
  "appliedPendingConsumption",
]);
const PAGE = 256;

/** Reads from the first unfinished input on, so it costs what is unfinished and not what there ever was. */
export async function unfinishedInputs(
  store: StateStore,
  sessionId: string,
): Promise<readonly InputView[]> {
  const record = await store.load(keys.session(requireId(sessionId, "session id")));
  const first = record === undefined ? 0 : decodeSession(record).ledger.firstActive;
  const found: InputView[] = [];
  let after = first === 0 ? undefined : first - 1;
  do {
    const page = await listInputs(store, sessionId, {
      limit: PAGE,
      ...(after === undefined ? {} : { after }),
    });
    // What was not durable is forgotten by recovery.
    found.push(
      ...page.items.filter(
        (view) => unfinished.has(view.phase) && view.header.durability !== "ephemeral",
      ),
    );
    after = page.next;
  } while (after !== undefined);
  return found;
}
