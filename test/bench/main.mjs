/**
 * Prints one table of all measures, as Markdown. `--quick` takes few samples, to see that all of it
 * runs; `--only NAME` takes one measure. Figures are no tests: nothing fails because it was slow.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { accept, history } from "./accept.mjs";
import { commits } from "./commits.mjs";
import { start } from "./start.mjs";
import { queueByHand, turns } from "./turns.mjs";

const print = (line) => process.stdout.write(`${line}\n`);

const measures = { start, commits, queueByHand, turns, accept, history };

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, only: { type: "string" } },
});
if (values.only !== undefined && !(values.only in measures)) {
  process.stderr.write(
    `There is no measure ${values.only}. There are ${Object.keys(measures).join(", ")}.\n`,
  );
  process.exit(2);
}

print(`Node ${process.versions.node}, ${availableParallelism()} cores\n`);
print("| measure | figure | ratio | goal |");
print("|---|---|---|---|");
for (const [name, measure] of Object.entries(measures)) {
  if (values.only !== undefined && values.only !== name) continue;
  for (const row of await measure({ isQuick: values.quick })) {
    const goal = row.goal === undefined ? "" : `${row.goal}: ${row.holds ? "holds" : "missed"}`;
    print(`| ${row.what} | ${row.figure} | ${row.ratio ?? ""} | ${goal} |`);
  }
}
