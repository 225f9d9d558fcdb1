/** One line of counts on stderr, drawn over and over, and only where stderr is a terminal. */
import type { Output } from "./output.js";

export interface ProgressCounts {
  readonly accepted: number;
  readonly deduplicated: number;
  readonly completed: number;
  readonly waiting: number;
}

const EVERY_MS = 100;
const CLEAR = "\r\u001b[K";

/** Begins to draw; the function that it gives ends it and clears the line. */
export function drawProgress(
  stderr: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number },
  output: Output,
  counts: () => ProgressCounts,
): () => void {
  if (stderr.isTTY !== true) return () => {};
  let isDrawn = false;
  const clear = () => {
    if (isDrawn) stderr.write(CLEAR);
    isDrawn = false;
  };
  const timer = setInterval(() => {
    const { accepted, deduplicated, completed, waiting } = counts();
    const line = `${accepted} accepted, ${deduplicated} deduplicated, ${completed} completed, ${waiting} waiting`;
    // A line that wraps could not be drawn over.
    stderr.write(`${CLEAR}${line.slice(0, (stderr.columns ?? 80) - 1)}`);
    isDrawn = true;
  }, EVERY_MS);
  output.beforePrint = clear;
  return () => {
    clearInterval(timer);
    clear();
    output.beforePrint = () => {};
  };
}
