/**
 * Processes killed by SIGKILL at random moments, on a real LevelDB, with real programs that outlive
 * them. What was acknowledged must be consumed exactly once, whatever was struck and when.
 *
 * `HOLDFAST_TEST_SCALE` scales the number of kills and inputs, `HOLDFAST_TEST_SEED` repeats a choice
 * of moments; what is hit at a moment depends on the machine too.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { auditSessions } from "../../src/sessions/verify.js";
import { auditRecords, levelStore, type StateStore } from "../../src/store/index.js";
import { seededRandom } from "../world.js";
import { sessionNames } from "./kill-feed.js";
import { contradictions, readInputs, readLedger, type StoredInput } from "./kill-ledger.js";
import { KillRun } from "./kill-run.js";

const scale = Number(process.env.HOLDFAST_TEST_SCALE ?? 1);
const seed = Number(process.env.HOLDFAST_TEST_SEED ?? Date.now() % 1_000_000);
const kills = Math.ceil(200 * scale);
const inputs = Math.ceil(500 * scale);

it(`${inputs} inputs through ${kills} kills are each consumed exactly once (seed ${seed})`, {
  timeout: 120_000 + 600_000 * scale,
}, async ({ annotate }) => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-kill-"));
  try {
    const run = new KillRun({ directory, kills, inputs, random: seededRandom(seed) });
    await run.run();
    await annotate(run.figures());
    expect(run.faults).toEqual([]);
    expect(run.strikes).toBe(kills);
    // Below some 50 kills it is chance which moments are met.
    if (kills >= 50) expect(run.phases.size).toBeGreaterThanOrEqual(8);
    const store = await levelStore(run.store, { create: false });
    try {
      await requireSound(store);
      const stored = await readInputs(store, sessionNames);
      requireTakenOnce(stored, run);
      requireAppliedOnce(stored, run);
    } finally {
      await store.close();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** Read from the rows, and by another way than the command line's. */
async function requireSound(store: StateStore): Promise<void> {
  const findings: unknown[] = [...(await auditRecords(store)).findings];
  const counts = await auditSessions(store, (finding) => findings.push(finding));
  expect(findings).toEqual([]);
  expect(counts).toMatchObject({ sessions: sessionNames.length, inputs, unfinished: 0 });
}

/** However often a key was sent, it is one input, under the id that every answer gave. */
function requireTakenOnce(stored: readonly StoredInput[], { sender }: KillRun): void {
  const name = ({
    session,
    key,
  }: {
    readonly session: string;
    readonly key?: string | undefined;
  }) => `${session} ${key}`;
  expect(stored.map(name).toSorted()).toEqual(sender.inputs.map(name).toSorted());
  for (const input of stored) {
    expect(input).toMatchObject({ phase: "consumed", receipts: [input.turnId] });
    const { acknowledged, completedBy } = sender.input(input.session, input.key ?? "");
    expect(new Set(acknowledged)).toEqual(new Set([input.id]));
    expect(new Set(completedBy)).toEqual(new Set([input.turnId]));
  }
}

/** The outside agrees: the attempt that was committed applied the input, and none came after it. */
function requireAppliedOnce(stored: readonly StoredInput[], { ledger }: KillRun): void {
  const lines = readLedger(ledger);
  expect(new Set(lines.map(({ inputId }) => inputId))).toEqual(new Set(stored.map(({ id }) => id)));
  const found = stored.flatMap((input) =>
    contradictions(
      input,
      lines.filter(({ inputId }) => inputId === input.id),
    ),
  );
  expect(found).toEqual([]);
}
