/**
 * `sessions stop`, `retire`, `reset`, `recycle`, `unregister` and `destroy`: one operation on one
 * stored session. The session is taken into service without an executor, so no turn begins, and let
 * go again.
 */
import { createInterface } from "node:readline/promises";
import { fileBlobStore } from "../blobs/files.js";
import { DestroyedError } from "../errors.js";
import type { Session } from "../sessions/handle.js";
import { blobsPath } from "../store/level/layout.js";
import { UsageError } from "./cli-errors.js";
import { withExistingStore } from "./existing-store.js";
import { findSessionId } from "./id-prefix.js";
import type { Operation } from "./operations.js";
import type { Output } from "./output.js";
import { count, plainId } from "./plain-text.js";
import type { SessionStreams } from "./session-command.js";

export interface OperateCommand {
  readonly operation: Operation;
  /** A session id, or a beginning that only one has. */
  readonly given: string;
  readonly directory: string;
  /** Says yes before it is asked. */
  readonly isSure: boolean;
}

type OperateStreams = Pick<SessionStreams, "stdin" | "stderr">;

export async function operateSession(
  { operation, given, directory, isSure }: OperateCommand,
  output: Output,
  streams: OperateStreams,
): Promise<void> {
  const mayAsk = streams.stdin.isTTY === true;
  if (operation === "destroy" && !isSure && !mayAsk) {
    throw new UsageError("`sessions destroy` ends a session; confirm with --yes.");
  }
  await withExistingStore(directory, async (store) => {
    const id = await findSessionId(store, given);
    if (operation === "destroy" && !isSure && !(await isConfirmed(id, streams))) {
      output.remark("Nothing was changed.");
      return;
    }
    const { Supervisor } = await import("../supervisor/supervisor.js");
    const blobs = fileBlobStore(blobsPath(directory));
    await using supervisor = await Supervisor.open({ store, blobs });
    const stored = await (await supervisor.sessions.get(id)).snapshot();
    // Opening it would begin it anew, which nobody asked for.
    if (stored.state === "destroyed") throw new DestroyedError(id, operation);
    const session = await supervisor.sessions.open(id);
    const report = await reportOf(session, operation);
    const { state } = await session.snapshot();
    const counts = Object.entries(report).map(
      ([name, n]) => `, ${count(n, "input")} ${words[name]}`,
    );
    const text = `${plainId(id)}  ${operation} done, now ${state}${counts.join("")}`;
    await output.print({ id, operation, state, ...report }, text);
  });
}

/** Counts of inputs by what became of them. */
async function reportOf(
  session: Session,
  operation: Operation,
): Promise<Readonly<Record<string, number>>> {
  if (operation !== "unregister") return { ...(await session[operation]()) };
  await session.unregister();
  return {};
}

const words: Readonly<Record<string, string>> = {
  abandoned: "given up",
  pendingDrain: "still to be drained",
  transferred: "waiting",
};

async function isConfirmed(id: string, { stdin, stderr }: OperateStreams): Promise<boolean> {
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    const answer = await terminal.question(`Destroy session ${plainId(id)}? [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
