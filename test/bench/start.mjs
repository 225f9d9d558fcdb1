/** The time from nothing to an open, empty store, in a process of its own. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { median, withDirectory } from "./measure.mjs";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

const script = `
  const start = performance.now();
  const { Supervisor } = await import("holdfast");
  const imported = performance.now();
  const supervisor = await Supervisor.open({ store: process.argv[1] });
  console.log(JSON.stringify({ importMs: imported - start, totalMs: performance.now() - start }));
  await supervisor.close();
`;

export async function start({ isQuick }) {
  const values = [];
  for (let round = 0; round < (isQuick ? 2 : 15); round += 1) {
    const { stdout } = await withDirectory((directory) =>
      run(process.execPath, ["--input-type=module", "-e", script, directory], { cwd: root }),
    );
    values.push(JSON.parse(stdout));
  }
  const totalMs = median(values.map((value) => value.totalMs));
  const importMs = median(values.map((value) => value.importMs));
  return [
    {
      what: "import holdfast and open an empty store, median",
      figure: `${totalMs.toFixed(0)} ms, of which import ${importMs.toFixed(0)} ms`,
      goal: "≤ 300 ms",
      holds: totalMs <= 300,
    },
  ];
}
