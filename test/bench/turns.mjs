/**
 * Durable turns: an input is accepted, staged, executed by a function that does nothing, reaches its
 * boundary and is consumed. Each sender waits for its turn before it sends the next. The peer beside
 * it is the least that a queue by hand can do: one synced write to take a job, one to end it.
 */
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { functionExecutor, Supervisor } from "holdfast";
import { median, perSecond, quantile, withDirectory } from "./measure.mjs";

const executor = () => functionExecutor(async () => ({ result: "done" }));

export async function turns({ isQuick }) {
  const rows = [];
  for (const sessions of [1, 10, 100, 1_000]) {
    const total = (isQuick ? 1 : 8) * Math.min(2_500, 250 * sessions);
    const { seconds, latencies } = await run(sessions, total);
    const rate = latencies.length / seconds;
    const p99 = quantile(latencies, 0.99);
    const isGoal = sessions === 1_000;
    rows.push({
      what: `durable turns, ${sessions.toLocaleString("en")} ${sessions === 1 ? "session" : "sessions"}`,
      figure: `${Math.round(rate).toLocaleString("en")} turns/s, p50 ${median(latencies).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
      ...(isGoal && { goal: "≥ 5,000/s, p99 ≤ 250 ms", holds: rate >= 5_000 && p99 <= 250 }),
    });
  }
  return rows;
}

async function run(sessionCount, total) {
  return withDirectory(async (directory) => {
    const supervisor = await Supervisor.open({ store: join(directory, "store") });
    const sessions = await Promise.all(
      Array.from({ length: sessionCount }, (_, index) =>
        supervisor.sessions.open(`bench-${index}`, { executor: executor() }),
      ),
    );
    const each = Math.ceil(total / sessionCount);
    const send = (count, latencies) =>
      Promise.all(
        sessions.map(async (session) => {
          for (let turn = 0; turn < count; turn += 1) {
            const start = performance.now();
            const { completion } = await session.accept({ kind: "prompt", text: "next, please" });
            await completion;
            latencies.push(performance.now() - start);
          }
        }),
      );
    await send(Math.ceil(each / 8), []);
    const latencies = [];
    const start = performance.now();
    await send(each, latencies);
    const seconds = (performance.now() - start) / 1_000;
    await supervisor.close();
    return { seconds, latencies };
  });
}

export async function queueByHand({ isQuick }) {
  return withDirectory(async (directory) => {
    const db = new ClassicLevel(directory, { valueEncoding: "json" });
    await db.open();
    const total = isQuick ? 200 : 3_000;
    const start = performance.now();
    for (let job = 0; job < total; job += 1) {
      const key = `job-${String(job).padStart(12, "0")}`;
      await db.put(key, { text: "next, please", state: "queued" }, { sync: true });
      await db.put(key, { text: "next, please", state: "done", result: "done" }, { sync: true });
    }
    const ms = performance.now() - start;
    await db.close();
    return [
      {
        what: "a queue by hand on LevelDB, one synced write to take a job and one to end it",
        figure: `${perSecond(total, ms)} jobs/s, one at a time`,
      },
    ];
  });
}
