/** A turn as an executor gets it, and what a run left behind. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultLimits } from "../../../src/limits.js";
import type { TurnRequest } from "../../../src/sessions/executors/executor.js";
import { parseInput } from "../../../src/sessions/parse-input.js";
import type { TranscriptEntry } from "../../../src/sessions/records.js";

export function turnRequest(
  overrides: {
    readonly texts?: readonly string[];
    readonly signal?: AbortSignal;
    readonly transcript?: readonly TranscriptEntry[];
    readonly attempt?: number;
  } = {},
): TurnRequest {
  // What a program may be given is bounded at admission, and not here.
  const limits = { ...defaultLimits, payloadBytesMax: 100_000_000 };
  const { texts = ["hello"], signal, transcript = [], attempt = 1 } = overrides;
  return {
    turnId: "turn-1",
    sessionId: "session-1",
    attempt,
    inputs: texts.map((text, sequence) => {
      const given = { id: () => `input-${sequence}`, nowMs: 0, limits };
      const { header, payload } = parseInput({ kind: "prompt", text }, given);
      return { inputId: header.id, sequence, attempt, header, payload };
    }),
    context: { tenant: "t1" },
    transcript: {
      messages: transcript.flatMap((entry) => entry.messages).length,
      entries: transcript.length,
      list: async ({ after = -1, limit = 100 } = {}) =>
        transcript.slice(after + 1, after + 1 + limit),
    },
    steered: () => new Promise(() => {}),
    checkpoint: async () => [],
    signal: signal ?? new AbortController().signal,
  };
}

/** Waits until a process is gone, or a zombie that only its parent can take away. */
export async function hasGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 500; tries += 1) {
    if (!isRunning(pid)) return true;
    await sleep(10);
  }
  return false;
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return process.platform !== "linux";
  }
}

/** Waits until a file says something, and gives it. */
export async function contentOf(path: string): Promise<string> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    try {
      const text = readFileSync(path, "utf8");
      if (text.endsWith("\n")) return text.trim();
    } catch {
      // Not there yet.
    }
    await sleep(5);
  }
  throw new Error(`${path} never came to be`);
}
