/** The end of a conversation, for executors that show it to a program or a model. */
import type { TranscriptEntry } from "../records.js";
import type { TurnRequest } from "./executor.js";

/** The last `count` entries, fewer where there are not as many, oldest first. */
export async function lastEntries(
  { transcript }: TurnRequest,
  count: number,
): Promise<readonly TranscriptEntry[]> {
  const found: TranscriptEntry[] = [];
  let after = transcript.entries - count - 1;
  while (found.length < count) {
    const page = await transcript.list({
      ...(after < 0 ? {} : { after }),
      limit: count - found.length,
    });
    if (page.length === 0) break;
    found.push(...page);
    after = Math.max(after, -1) + page.length;
  }
  return found;
}
