/** What every measure needs: a directory that goes away, a clock, quantiles. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Runs work with a new directory, which is removed afterwards. */
export async function withDirectory(work) {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Milliseconds that work takes. */
export async function timeMs(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** The value below which the fraction of the values lies. */
export function quantile(values, fraction) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))];
}

export function median(values) {
  return quantile(values, 0.5);
}

/**
 * Runs contenders in turn, several rounds each, and gives the values of each. Rounds alternate, so
 * that a noisy machine is noisy for all of them.
 */
export async function alternate(rounds, contenders) {
  const values = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, run] of Object.entries(contenders)) values[name].push(await run(round));
  }
  return values;
}

/** A rate as people read it. */
export function perSecond(count, ms) {
  return Math.round((count / ms) * 1_000).toLocaleString("en");
}
