/** `inputs list` and `inputs show`: the inputs of one session, without claiming or changing anything. */
import { inputMachine } from "../../machines/input.js";
import { NotFoundError, ValidationError } from "../errors.js";
import { listInputs, loadSession } from "../sessions/handle.js";
import type { InputView } from "../sessions/input.js";
import { viewOf } from "../sessions/live-input.js";
import { type BoundaryReceipt, decodeInput, keys } from "../sessions/records.js";
import { storedCompletion } from "../sessions/stored-completion.js";
import type { StateStore } from "../store/port.js";
import { findInputId, findSessionId } from "./id-prefix.js";
import type { Output } from "./output.js";
import { count, oneLine, plainId } from "./plain-text.js";

const PAGE = 256;
const PAYLOAD_MAX = 100;
const ended = new Set(["consumed", "superseded", "coalesced", "abandoned"]);

export async function listSessionInputs(
  store: StateStore,
  given: string,
  filter: { readonly phase?: string | undefined },
  output: Output,
): Promise<void> {
  const { phase } = filter;
  const phases = Object.keys(inputMachine.config.states ?? {});
  if (phase !== undefined && !phases.includes(phase)) {
    throw new ValidationError("option --phase", [
      { path: "", found: JSON.stringify(phase), expected: `one of ${phases.join(", ")}` },
    ]);
  }
  const id = await findSessionId(store, given);
  await loadSession(store, id);
  let found = 0;
  let after: number | undefined;
  do {
    const page = await listInputs(store, id, {
      limit: PAGE,
      ...(phase === undefined ? {} : { phase }),
      ...(after === undefined ? {} : { after }),
    });
    for (const view of page.items) {
      found += 1;
      await output.print(view, lineOf(view));
    }
    after = page.next;
  } while (after !== undefined && !output.closed.aborted);
  if (found === 0) output.remark(`No inputs${phase === undefined ? "" : ` that are ${phase}`}.`);
}

export async function showInput(
  store: StateStore,
  given: { readonly session: string; readonly input: string },
  output: Output,
): Promise<void> {
  const sessionId = await findSessionId(store, given.session);
  const inputId = await findInputId(store, sessionId, given.input);
  const index = await store.load(keys.inputId(sessionId, inputId));
  const { sequence } = (index?.value ?? {}) as { readonly sequence?: number };
  const record =
    sequence === undefined ? undefined : await store.load(keys.input(sessionId, sequence));
  if (record === undefined) throw new NotFoundError("input", inputId);
  const input = decodeInput(record);
  const view = viewOf(input);
  const { history } = input.snapshot.context as unknown as { history: readonly Move[] };
  const completion = ended.has(view.phase)
    ? await storedCompletion((key) => store.load(key), sessionId, input)
    : null;
  const receipt = await receiptOf(store, sessionId, view);
  const text = [
    `input      ${plainId(inputId)}, number ${view.sequence} of session ${plainId(sessionId)}`,
    `phase      ${view.phase}, ${count(view.attempts, "attempt")}, ${count(view.recoveries, "recovery", "recoveries")}`,
    `payload    ${oneLine(JSON.stringify(view.payload), 500)}`,
    `header     ${oneLine(JSON.stringify(view.header), 500)}`,
    `completion ${completion === null ? "none yet" : oneLine(JSON.stringify(completion), 500)}`,
    `receipt    ${receipt === null ? "none" : `turn ${plainId(receipt.turnId)} receipt ${receipt.sequence}, ${count(receipt.inputIds.length, "input")}`}`,
    ...history.map(
      (move) => `  ${oneLine(move.at)}  ${move.from} → ${move.to}  (${oneLine(move.event)})`,
    ),
  ].join("\n");
  await output.print({ ...view, completion, receipt, history }, text);
}

interface Move {
  readonly at: string;
  readonly from: string;
  readonly to: string;
  readonly event: string;
}

async function receiptOf(
  store: StateStore,
  sessionId: string,
  { lastTurnId, lastBoundarySequence }: InputView,
): Promise<BoundaryReceipt | null> {
  if (lastTurnId === null || lastBoundarySequence === null) return null;
  const record = await store.load(keys.receipt(sessionId, lastTurnId, lastBoundarySequence));
  return (record?.value as unknown as BoundaryReceipt | undefined) ?? null;
}

function lineOf(view: InputView): string {
  const { kind: _, ...payload } = view.payload;
  const key = view.header.idempotencyKey;
  return [
    String(view.sequence).padStart(6),
    plainId(view.inputId),
    view.phase.padEnd(9),
    view.kind,
    key === undefined ? "-" : plainId(key),
    oneLine("text" in payload ? payload.text : JSON.stringify(payload), PAYLOAD_MAX),
  ].join("  ");
}
