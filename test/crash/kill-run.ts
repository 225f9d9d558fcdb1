/** A run of the kill test: life after life is struck, until the kills are used up and all is done. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hasGone, isRunning } from "../sessions/executors/turn-request.js";
import { Sender } from "./kill-feed.js";
import { readLedger } from "./kill-ledger.js";
import { type Life, live, type Moment, type Orders } from "./kill-life.js";

const cli = fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url));
/** Kills between two audits of the whole store by the command line. */
const VERIFY_EVERY = 25;
/** Of the kills, those that strike the programs with the process, as the end of a container does. */
const WITH_PROGRAMS = 0.3;

/** Moments by what they follow: how often each is chosen, up to which count, and how long after. */
const moments = [
  { after: "spawn", weight: 2, nthMax: 1, delayMsMax: 40 },
  { after: "started", weight: 2, nthMax: 1, delayMsMax: 60 },
  { after: "imported", weight: 6, nthMax: 1, delayMsMax: 15 },
  { after: "opened", weight: 6, nthMax: 1, delayMsMax: 5 },
  { after: "activating", weight: 6, nthMax: 4, delayMsMax: 5 },
  { after: "commit recovery", weight: 10, nthMax: 4, delayMsMax: 2 },
  { after: "attached", weight: 4, nthMax: 4, delayMsMax: 20 },
  { after: "commit admission", weight: 12, nthMax: 4, delayMsMax: 2 },
  { after: "acknowledged", weight: 8, nthMax: 4, delayMsMax: 10 },
  { after: "commit staging", weight: 12, nthMax: 5, delayMsMax: 2 },
  { after: "turn", weight: 12, nthMax: 6, delayMsMax: 60 },
  { after: "turnOver", weight: 8, nthMax: 6, delayMsMax: 2 },
  { after: "commit boundary", weight: 16, nthMax: 6, delayMsMax: 2 },
  { after: "done", weight: 6, nthMax: 6, delayMsMax: 10 },
  { after: "closing", weight: 6, nthMax: 1, delayMsMax: 10 },
];

export interface KillOptions {
  readonly directory: string;
  readonly kills: number;
  readonly inputs: number;
  readonly random: () => number;
}

export class KillRun {
  readonly store: string;
  readonly ledger: string;
  readonly sender: Sender;
  /** What went wrong on the way. The run ends with the first. */
  readonly faults: string[] = [];
  /** Kills by what they struck. */
  readonly phases = new Map<string, number>();
  /** Workers that were ended by SIGKILL. */
  strikes = 0;
  readonly #kills: number;
  readonly #random: () => number;
  /** Programs that lived on after the process that started them. */
  readonly #orphans = new Set<number>();
  #audits = 0;

  constructor({ directory, kills, inputs, random }: KillOptions) {
    this.store = join(directory, "store");
    this.ledger = join(directory, "ledger");
    this.sender = new Sender(inputs, random);
    this.#kills = kills;
    this.#random = random;
    writeFileSync(this.ledger, "");
  }

  async run(): Promise<void> {
    while (this.strikes < this.#kills && this.faults.length === 0) await this.#strike();
    if (this.faults.length === 0) await this.#finish();
    // Programs of dead processes may still write to the ledger.
    for (const pid of this.#orphans) await hasGone(pid);
  }

  figures(): string {
    const phases = [...this.phases].sort(([, a], [, b]) => b - a);
    const began = new Set(
      readLedger(this.ledger)
        .filter(({ type }) => type === "began")
        .map(({ turnId }) => turnId),
    );
    const { inputs } = this.sender;
    const answers = inputs.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
    return [
      `${this.strikes} kills in ${this.phases.size} phases`,
      `(${phases.map(([phase, count]) => `${count} ${phase}`).join(", ")})`,
      `${inputs.length} inputs acknowledged ${answers} times, ${began.size} turns begun`,
      `${this.#orphans.size} programs outlived their process, ${this.#audits} audits`,
    ].join("; ");
  }

  async #strike(): Promise<void> {
    const moment = this.#moment();
    // Some lives get much to do, most little, so that all of it lasts until the last kill.
    const share = this.sender.unsent / (this.#kills - this.strikes);
    const feed = this.sender.next(Math.floor(share * 2 * this.#random() + this.#random()));
    const end =
      moment.after !== "closing" ? "stay" : this.#chance(0.5) ? "drain" : "cancel-and-drain";
    const place = readLedger(this.ledger).length;
    const life = await live({ ...this.#orders(), feed, end }, moment);
    this.#take(life);
    // A worker that was to close may have done so before it was struck.
    if (life.phase === "closed" && life.exitCode === 0) return;
    if (life.signal !== "SIGKILL") {
      this.faults.push(
        `a worker ended by itself (${life.exitCode ?? life.signal}): ${life.stderr}`,
      );
      return;
    }
    this.strikes += 1;
    this.phases.set(life.phase, (this.phases.get(life.phase) ?? 0) + 1);
    this.#lookAtPrograms(place);
    if (this.strikes % VERIFY_EVERY === 0) await this.#audit();
  }

  /** A life that is let be, until everything has ended. */
  async #finish(): Promise<void> {
    const life = await live({ ...this.#orders(), feed: this.sender.rest(), end: "drain" });
    this.#take(life);
    if (life.exitCode !== 0) this.faults.push(`the last worker failed: ${life.stderr}`);
    if (!this.sender.isDone) this.faults.push("some inputs have no end after a whole life");
    await this.#audit();
  }

  #orders(): Pick<Orders, "store" | "ledger"> {
    return { store: this.store, ledger: this.ledger };
  }

  /** What the sender learns from what a worker said before its end. */
  #take({ reports, stderr }: Life): void {
    if (stderr !== "") this.faults.push(`a worker complained: ${stderr}`);
    for (const { type, session = "", key = "", inputId = "", outcome, result } of reports) {
      if (type === "acknowledged") this.sender.input(session, key).acknowledged.push(inputId);
      if (type !== "done") continue;
      this.sender.input(session, key).completedBy.push(String(result));
      if (outcome !== "completed") this.faults.push(`${key} of ${session} ended as ${outcome}`);
    }
  }

  /** Programs of a process that was struck: some die with it, the others go on by themselves. */
  #lookAtPrograms(place: number): void {
    const lines = readLedger(this.ledger).slice(place);
    const pids = new Set(lines.filter(({ type }) => type === "began").map(({ pid }) => pid));
    const isStruck = this.#chance(WITH_PROGRAMS);
    for (const pid of pids) {
      if (!isRunning(pid)) continue;
      if (isStruck) kill(-pid);
      else this.#orphans.add(pid);
    }
  }

  async #audit(): Promise<void> {
    this.#audits += 1;
    const args = [cli, "store", "verify", "--json", "--store", this.store];
    const { stdout, error } = await promisify(execFile)(process.execPath, args).then(
      ({ stdout }) => ({ stdout, error: undefined }),
      (error) => ({ stdout: String(error.stdout), error }),
    );
    if (error !== undefined) this.faults.push(`store verify: ${error.message} ${stdout}`);
  }

  #moment(): Moment {
    const sum = moments.reduce((total, { weight }) => total + weight, 0);
    let at = this.#random() * sum;
    const chosen = moments.find(({ weight }) => {
      at -= weight;
      return at < 0;
    });
    const { after, nthMax, delayMsMax } = chosen ?? { after: "spawn", nthMax: 1, delayMsMax: 40 };
    return {
      after,
      nth: 1 + Math.floor(this.#random() * nthMax),
      delayMs: this.#chance(0.4) ? 0 : this.#random() * delayMsMax,
    };
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }
}

function kill(group: number): void {
  try {
    process.kill(group, "SIGKILL");
  } catch {
    // It ended between the look and the kill.
  }
}
