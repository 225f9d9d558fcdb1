/** What taking one input costs: alone against one synced batch, and with a long history behind it. */
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { functionExecutor, Supervisor } from "holdfast";
import { alternate, median, withDirectory } from "./measure.mjs";

export async function accept({ isQuick }) {
  const count = isQuick ? 50 : 400;
  return withDirectory(async (directory) => {
    const db = new ClassicLevel(join(directory, "raw"));
    await db.open();
    const supervisor = await Supervisor.open({ store: join(directory, "store") });
    // No executor is bound, so nothing but the admission is measured.
    const session = await supervisor.sessions.open("alone");
    const text = "x".repeat(400);
    const values = { raw: [], accept: [] };
    await alternate(count, {
      raw: async (round) => {
        const start = performance.now();
        const batch = db.batch();
        for (let row = 0; row < 5; row += 1) batch.put(`row-${round}-${row}`, text);
        await batch.write({ sync: true });
        values.raw.push(performance.now() - start);
      },
      accept: async () => {
        const start = performance.now();
        await session.accept({ kind: "prompt", text: "next, please" });
        values.accept.push(performance.now() - start);
      },
    });
    await supervisor.close();
    await db.close();
    const [raw, own] = [median(values.raw), median(values.accept)];
    return [
      { what: "one synced raw batch of 5 rows, median", figure: `${raw.toFixed(2)} ms` },
      {
        what: "one session alone, accept to acknowledgement, median",
        figure: `${own.toFixed(2)} ms`,
        ratio: `raw + ${(own - raw).toFixed(2)} ms`,
        goal: "raw + ≤ 0.5 ms",
        holds: own - raw <= 0.5,
      },
    ];
  });
}

export async function history({ isQuick }) {
  const long = isQuick ? 2_000 : 100_000;
  const samples = isQuick ? 100 : 1_000;
  return withDirectory(async (directory) => {
    const supervisor = await Supervisor.open({ store: join(directory, "store") });
    const executor = functionExecutor(async () => ({ result: "done" }));
    const [young, old] = await Promise.all(
      ["young", "old"].map((id) => supervisor.sessions.open(id, { executor })),
    );
    await consume(young, 10);
    await consume(old, long);
    // Without an executor from here on: what is measured is the admission.
    await Promise.all([young.stop(), old.stop()]);
    const sessions = {
      young: await supervisor.sessions.open("young"),
      old: await supervisor.sessions.open("old"),
    };
    const acceptMs = async (session, index) => {
      const start = performance.now();
      const idempotencyKey = `sample-${index}`;
      await session.accept({ kind: "prompt", text: "next, please", idempotencyKey });
      return performance.now() - start;
    };
    const values = await alternate(samples, {
      young: (index) => acceptMs(sessions.young, index),
      old: (index) => acceptMs(sessions.old, index),
    });
    await supervisor.close({ mode: "cancel-and-drain" });
    const [first, last] = [median(values.young), median(values.old)];
    return [
      { what: "accept with 10 inputs of history, median", figure: `${first.toFixed(3)} ms` },
      {
        what: `accept with ${long.toLocaleString("en")} inputs of history, median`,
        figure: `${last.toFixed(3)} ms`,
        ratio: `${(last / first).toFixed(2)} of that with 10`,
        goal: "0.8 to 1.2",
        holds: last / first <= 1.2,
      },
    ];
  });
}

async function consume(session, count) {
  const width = 1_000;
  for (let done = 0; done < count; done += width) {
    const burst = Math.min(width, count - done);
    const taken = await Promise.all(
      Array.from({ length: burst }, (_, index) =>
        session.accept({
          kind: "prompt",
          text: "next, please",
          idempotencyKey: `history-${done + index}`,
        }),
      ),
    );
    await Promise.all(taken.map(({ completion }) => completion));
  }
}
