/**
 * The policy table: what becomes of an input, as a pure function of its kind, its handling and
 * whether the session rests or runs. It is data, so that it can be shown, tested row by row, and
 * stored by version with each input.
 */
import type { TurnBoundary } from "../../machines/turn.js";
import type { Handling, InputPayload } from "./input.js";

export const POLICY_VERSION = 1;

export interface PolicyDecision {
  readonly apply: "turnStart" | "turnBoundary" | "now" | "ignore";
  readonly wake: "ifIdle" | "interruptYielding" | "none";
  readonly queue: "fifo" | "coalesce" | "supersede" | "priority" | "none";
  readonly consume: "onAccept" | "onApply" | "onTurnStart" | "onTurnComplete" | "explicitAck";
  readonly drain: "nextTurn" | "steerBatch" | "immediate" | "ignore";
  readonly route: "queue" | "steer" | "immediate" | "drop";
  readonly transcript: boolean;
}

export interface Policy {
  readonly version: number;
  readonly decision: PolicyDecision;
}

/** What the session will do with an input, stored with it and checked at recovery. */
export interface SemanticsStamp {
  readonly boundary: TurnBoundary;
  readonly execution: "contentTurn" | "resumePending";
  readonly terminalIntent?: string;
}

/** Resting: idle, attached. */
export type Activity = "resting" | "running";

/** The rows of the table: the kinds, peers by their convention. */
export type PolicyRow =
  | "prompt"
  | "flowStep"
  | "externalEvent"
  | "peerMessage"
  | "peerRequest"
  | "peerResponseProgress"
  | "peerResponseTerminal"
  | "continuation"
  | "operation";

const contentTurn: PolicyDecision = {
  apply: "turnStart",
  wake: "ifIdle",
  queue: "fifo",
  consume: "onTurnComplete",
  drain: "nextTurn",
  route: "queue",
  transcript: true,
};
const contentTurnWhileRunning: PolicyDecision = { ...contentTurn, wake: "none" };
const peerWhileRunning: PolicyDecision = { ...contentTurn, wake: "interruptYielding" };
const progress: PolicyDecision = {
  apply: "turnBoundary",
  wake: "none",
  queue: "coalesce",
  consume: "onTurnComplete",
  drain: "steerBatch",
  route: "steer",
  transcript: true,
};
const continuation: PolicyDecision = {
  apply: "turnBoundary",
  wake: "ifIdle",
  queue: "fifo",
  consume: "onTurnComplete",
  drain: "steerBatch",
  route: "steer",
  transcript: false,
};
const operation: PolicyDecision = {
  apply: "ignore",
  wake: "none",
  queue: "priority",
  consume: "onAccept",
  drain: "ignore",
  route: "drop",
  transcript: false,
};

/** Version 1. */
export const policyTable: Readonly<Record<PolicyRow, Readonly<Record<Activity, PolicyDecision>>>> =
  {
    prompt: { resting: contentTurn, running: contentTurnWhileRunning },
    flowStep: { resting: contentTurn, running: contentTurnWhileRunning },
    externalEvent: { resting: contentTurn, running: contentTurnWhileRunning },
    peerMessage: { resting: contentTurn, running: peerWhileRunning },
    peerRequest: { resting: contentTurn, running: peerWhileRunning },
    peerResponseProgress: { resting: progress, running: progress },
    peerResponseTerminal: { resting: contentTurn, running: contentTurn },
    continuation: {
      resting: continuation,
      running: { ...continuation, wake: "interruptYielding" },
    },
    operation: { resting: operation, running: operation },
  };

function policyRow(payload: InputPayload): PolicyRow {
  if (payload.kind !== "peer") return payload.kind;
  switch (payload.convention?.type) {
    case "request":
      return "peerRequest";
    case "responseProgress":
      return "peerResponseProgress";
    case "responseTerminal":
      return "peerResponseTerminal";
    default:
      return "peerMessage";
  }
}

/** The decision for an input. `silentIntents` are those of the session. */
export function decidePolicy(
  payload: InputPayload,
  activity: Activity,
  silentIntents: readonly string[],
): Policy {
  const row = policyRow(payload);
  let decision = policyTable[row][activity];
  // A continuation and an event are queued by default; only a caller's own word overrides the table.
  const handling = "handling" in payload ? payload.handling : undefined;
  if (handling !== undefined) decision = handled(row, handling, activity, decision);
  if (isSilent(payload, silentIntents))
    decision = { ...decision, apply: "turnStart", wake: "none" };
  return { version: POLICY_VERSION, decision };
}

function handled(
  row: PolicyRow,
  handling: Handling,
  activity: Activity,
  decision: PolicyDecision,
): PolicyDecision {
  if (handling === "queue") {
    return {
      ...decision,
      apply: "turnStart",
      wake: activity === "resting" ? "ifIdle" : "none",
      queue: "fifo",
      drain: "nextTurn",
      route: "queue",
    };
  }
  return {
    ...decision,
    // A terminal response opens a turn of its own however it is handled.
    apply: row === "peerResponseTerminal" ? "turnStart" : "turnBoundary",
    wake: activity === "resting" ? "ifIdle" : "interruptYielding",
    queue: "fifo",
    drain: "steerBatch",
    route: "steer",
  };
}

/** Whether an input may only ride along: its intent is one that does not wake the session. */
export function isSilent(payload: InputPayload, silentIntents: readonly string[]): boolean {
  return (
    payload.kind === "peer" &&
    payload.convention?.type === "request" &&
    silentIntents.includes(payload.convention.intent)
  );
}

/**
 * What an input may replace while it waits: inputs of one scope speak of the same thing, and only the
 * newest counts. Progress reports on one request are one scope without being told so.
 */
export function replacementScope(
  payload: InputPayload,
  supersessionKey: string | undefined,
): string | undefined {
  if (supersessionKey !== undefined) return JSON.stringify([payload.kind, supersessionKey]);
  if (payload.kind !== "peer" || payload.convention?.type !== "responseProgress") return undefined;
  return JSON.stringify([payload.kind, "progress", payload.convention.requestId]);
}

/** The stamp that follows from a policy and an input; recovery computes it again and compares. */
export function semanticsStamp(policy: Policy, payload: InputPayload): SemanticsStamp {
  const { apply } = policy.decision;
  return {
    boundary:
      apply === "turnBoundary" ? "turnCheckpoint" : apply === "now" ? "immediate" : "turnStart",
    execution: payload.kind === "continuation" ? "resumePending" : "contentTurn",
    ...(payload.kind === "peer" && payload.convention?.type === "responseTerminal"
      ? { terminalIntent: payload.convention.status }
      : {}),
  };
}
