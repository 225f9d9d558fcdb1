/** One life of the worker: from its start to the SIGKILL that ends it, or to its own end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Feed } from "./kill-feed.js";

const worker = fileURLToPath(new URL("kill-worker.mjs", import.meta.url));
const program = fileURLToPath(new URL("kill-program.sh", import.meta.url));

/** A line that a worker said; see `kill-worker.mjs`. */
interface Report {
  readonly type: string;
  readonly purpose?: string;
  readonly session?: string;
  readonly key?: string;
  readonly inputId?: string;
  readonly outcome?: string;
  readonly result?: unknown;
}

/** When to strike: some milliseconds after the n-th report of a kind, or after the start. */
export interface Moment {
  readonly after: string;
  readonly nth: number;
  readonly delayMs: number;
}

export interface Orders {
  readonly store: string;
  readonly ledger: string;
  readonly feed: Feed;
  /** `stay`: rest when everything is done, until the kill. */
  readonly end: "stay" | "drain" | "cancel-and-drain";
}

export interface Life {
  readonly reports: readonly Report[];
  readonly signal: NodeJS.Signals | null;
  readonly exitCode: number | null;
  readonly stderr: string;
  /** What it was doing when it ended. */
  readonly phase: string;
}

/** Runs a worker; without a moment it is not killed. */
export async function live(orders: Orders, moment?: Moment): Promise<Life> {
  const child = spawn(process.execPath, [worker, JSON.stringify({ ...orders, program })], {
    // What a killed process leaves in the directory for temporary files goes with the test.
    env: { ...process.env, TMPDIR: dirname(orders.ledger) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const reports: Report[] = [];
  const strike = moment === undefined ? undefined : new Strike(child, moment);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const report = JSON.parse(line) as Report;
    reports.push(report);
    strike?.see(report);
  });
  // Not "exit": what it said before it died is still in the pipe.
  const [exitCode, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  strike?.end();
  return { reports, signal, exitCode, stderr, phase: phaseAfter(reports) };
}

class Strike {
  readonly #child: ChildProcess;
  readonly #moment: Moment;
  #timer: NodeJS.Timeout | undefined;
  #seen = 0;

  constructor(child: ChildProcess, moment: Moment) {
    this.#child = child;
    this.#moment = moment;
    if (moment.after === "spawn") this.#strikeSoon();
  }

  see({ type, purpose }: Report): void {
    const name = purpose === undefined ? type : `${type} ${purpose}`;
    if (name === this.#moment.after) this.#seen += 1;
    // A worker that has nothing left to do will not come to the moment any more.
    if (this.#seen >= this.#moment.nth || type === "resting") this.#strikeSoon();
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #strikeSoon(): void {
    const { delayMs } = this.#moment;
    if (delayMs === 0) this.#child.kill("SIGKILL");
    else this.#timer ??= setTimeout(() => this.#child.kill("SIGKILL"), delayMs);
  }
}

/** The innermost thing that had begun and not ended. */
function phaseAfter(reports: readonly Report[]): string {
  const count = (type: string, purpose?: string) =>
    reports.filter((report) => report.type === type && report.purpose === purpose).length;
  for (const purpose of ["boundary", "staging", "admission", "recovery"]) {
    if (count("commit", purpose) > count("committed", purpose)) return `commit of a ${purpose}`;
  }
  if (count("closed") > 0) return "closed";
  if (count("closing") > 0) return "closing";
  if (count("turn") > count("turnOver")) return "program running";
  if (count("activating") > count("attached")) return "activating a session";
  if (count("attached") > 0) return "between two steps";
  if (count("opened") > 0) return "opening the supervisor";
  if (count("imported") > 0) return "opening the store";
  return count("started") > 0 ? "loading the library" : "starting";
}
