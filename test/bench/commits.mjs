/**
 * Joined commits of the LevelDB adapter against raw LevelDB: as many writers as there are commits in
 * one raw batch, and the same record texts on both sides, made within the measured time. What the
 * adapter adds is transactions, checks of keys and values, conflict and lease judgement, and joining.
 */
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { encodeKey, encodeRecord, levelStore, recordHead } from "holdfast/store";
import { alternate, median, perSecond, timeMs, withDirectory } from "./measure.mjs";

const ROWS_PER_COMMIT = 5;

/** Rows of one commit, about as a session writes them when it admits an input. */
function rowsOf(commit) {
  const session = `session-${commit % 1_000}`;
  const id = `0198f0c2-8d5c-7000-8000-${String(commit).padStart(12, "0")}`;
  const snapshot = { value: "queued", context: { inputId: id, attempts: 0, history: [] } };
  return [
    [["bench", session], { snapshot, ledger: { nextInput: commit, unfinished: 3 } }],
    [
      ["bench", session, "input", id],
      {
        id,
        snapshot,
        header: { id, origin: { type: "operator" }, durability: "durable", createdAt: id },
        payload: { kind: "prompt", text: "Which rooms are free on Friday, and at what price?" },
        policy: { version: 1, decision: { route: "queue", apply: "turnStart", wake: "wake" } },
      },
    ],
    [["bench", session, "id", id], { sequence: commit }],
    [["bench", session, "journal", id], { moves: [{ actor: "input", event: "queue" }], at: id }],
    [["bench", session, "active"], { since: id }],
  ];
}

export async function commits({ isQuick }) {
  return withDirectory(async (directory) => {
    const store = await levelStore(join(directory, "adapter"));
    const db = new ClassicLevel(join(directory, "raw"), { cacheSize: 8 * 1_024 * 1_024 });
    await db.open();
    const lease = await store.claim(["bench"]);
    let next = 0;

    const adapter = (writers, total) =>
      timeMs(async () => {
        let left = total;
        const write = async () => {
          while (left > 0) {
            left -= 1;
            const transaction = await store.begin({ lease });
            for (const [key, value] of rowsOf(next++)) transaction.put(key, value);
            await transaction.commit();
          }
        };
        await Promise.all(Array.from({ length: writers }, write));
      });
    const raw = (writers, total) =>
      timeMs(async () => {
        for (let done = 0; done < total; done += writers) {
          const batch = db.batch();
          for (let commit = 0; commit < writers; commit += 1) {
            const head = recordHead(next, "0198f0c2-8d5c-7000-8000-000000000000");
            for (const [key, value] of rowsOf(next++)) {
              const encoded = encodeKey(key);
              batch.put(encoded, encodeRecord(encoded, head, JSON.stringify(value)));
            }
          }
          await batch.write({ sync: true });
        }
      });

    const rows = [];
    for (const writers of [1, 100, 1_000]) {
      const total = writers === 1 ? 300 : 10_000;
      const values = await alternate(isQuick ? 1 : 6, {
        raw: () => raw(writers, total),
        adapter: () => adapter(writers, total),
      });
      const [rawMs, adapterMs] = [median(values.raw), median(values.adapter)];
      rows.push(
        {
          what: `raw LevelDB, ${writers.toLocaleString("en")} × ${ROWS_PER_COMMIT} rows in each synced batch`,
          figure: `${perSecond(total, rawMs)} commits/s`,
        },
        {
          what: `LevelDB adapter, ${writers === 1 ? "1 writer" : `${writers.toLocaleString("en")} writers`}`,
          figure: `${perSecond(total, adapterMs)} commits/s`,
          ratio: `${(rawMs / adapterMs).toFixed(2)} of raw`,
          goal: "≥ 0.8",
          holds: rawMs / adapterMs >= 0.8,
        },
      );
    }
    await Promise.all([store.close(), db.close()]);
    return rows;
  });
}
