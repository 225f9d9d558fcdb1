/**
 * The journal: the kept moves of an owner, one row a plan. It serves looking back (time travel, the
 * sequence diagram) and, because each row is new, it proves that its plan was committed.
 */

import { sequenceSegment } from "../store/keys.js";
import type { JsonValue, Key } from "../store/port.js";
import { isoInstant } from "./clock.js";
import type { Move, Plan } from "./plan.js";

/** Old rows are removed this many at a time, so that most plans pay nothing for it. */
const TRIM_ROWS = 64;

interface JournalEntry {
  readonly at: string;
  readonly moves: readonly Move[];
}

/** Key of one entry. `owner` is the key of the owner's own record. */
export function journalKey(owner: Key, sequence: number): Key {
  return ["journal", ...owner, sequenceSegment(sequence)];
}

/**
 * Adds the plan's entry under `sequence`, and removes entries beyond `kept`: an owner keeps at
 * least `kept` and fewer than `kept` + 64 of them. Returns the key that proves the plan.
 */
export function journalPlan(
  plan: Plan,
  options: { readonly owner: Key; readonly sequence: number; readonly kept: number },
): Key {
  const { owner, sequence, kept } = options;
  const proof = journalKey(owner, sequence);
  const entry: JournalEntry = { at: isoInstant(plan.atMs), moves: plan.moves };
  plan.put(proof, entry as unknown as JsonValue);
  if (sequence >= kept && sequence % TRIM_ROWS === 0) {
    const end = sequence - kept;
    for (let old = Math.max(0, end - TRIM_ROWS); old < end; old += 1) {
      plan.delete(journalKey(owner, old));
    }
  }
  return proof;
}
