/**
 * A program with everything that it started, as one thing to signal and to end. On POSIX each
 * program leads a process group of its own; a descendant that leaves the group (`setsid`) is out of
 * reach. Elsewhere only the program itself can be ended. Groups that live when this process exits are
 * killed; when this process is killed itself, nothing can be done for them from here.
 */
import type { ChildProcess } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 10;
/** Time for the kernel to take a killed group away. */
const KILLED_MAX_MS = 1_000;

export const hasProcessGroups = process.platform !== "win32";

const living = new Set<ProcessGroup>();
let isHooked = false;

export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #pid: number;

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.#pid = pid;
  }

  /** The group of a program that was started with `detached: hasProcessGroups`. */
  static of(child: ChildProcess): ProcessGroup | undefined {
    if (child.pid === undefined) return undefined;
    const group = new ProcessGroup(child, child.pid);
    living.add(group);
    if (!isHooked) process.on("exit", killAll);
    isHooked = true;
    return group;
  }

  /** False when no member is left. */
  signal(name: NodeJS.Signals | 0): boolean {
    if (!hasProcessGroups) {
      const isAlive = this.#child.exitCode === null && this.#child.signalCode === null;
      return isAlive && (name === 0 || this.#child.kill(name));
    }
    try {
      process.kill(-this.#pid, name);
      return true;
    } catch (error) {
      // EPERM: a member is there that belongs to somebody else.
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }

  /**
   * Ends whatever is left of the group: asks by SIGTERM, and kills after `killAfterMs`. Returns when
   * nothing is left, or when a second after the kill something still is.
   */
  async end(killAfterMs: number): Promise<void> {
    try {
      if (this.signal("SIGTERM") && !(await this.#isGoneWithin(killAfterMs))) {
        this.signal("SIGKILL");
        await this.#isGoneWithin(KILLED_MAX_MS);
      }
    } finally {
      living.delete(this);
    }
  }

  async #isGoneWithin(ms: number): Promise<boolean> {
    const endMs = performance.now() + ms;
    while (await this.#isLeft()) {
      if (performance.now() >= endMs) return false;
      await sleep(POLL_MS);
    }
    return true;
  }

  /**
   * Whether a member is still running. Members whose parent died are taken away by process 1, which
   * in a container may be in no hurry; dead ones that only wait for that do not count.
   */
  async #isLeft(): Promise<boolean> {
    if (!this.signal(0)) return false;
    return process.platform !== "linux" || hasRunningMember(this.#pid);
  }
}

/** Looks through /proc, which costs some milliseconds; only the rare group that outlives its leader pays. */
async function hasRunningMember(group: number): Promise<boolean> {
  try {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const stats = await Promise.all(
      pids.map((pid) => readFile(`/proc/${pid}/stat`, "latin1").catch(() => "")),
    );
    return stats.some((stat) => {
      // After the name, which may hold anything: state, parent, group.
      const [state = "X", , member] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(member) === group && state !== "Z" && state !== "X";
    });
  } catch {
    // No /proc to look at: the signal's word stands.
    return true;
  }
}

function killAll(): void {
  for (const group of living) group.signal("SIGKILL");
}
