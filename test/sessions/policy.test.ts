import { describe, expect, it } from "vitest";
import type { InputPayload } from "../../src/sessions/input.js";
import {
  type Activity,
  decidePolicy,
  POLICY_VERSION,
  policyTable,
  replacementScope,
  semanticsStamp,
} from "../../src/sessions/policy.js";

/** The table of the specification, written down again: apply, wake, queue, consume, drain, route, transcript. */
const expected: Readonly<Record<string, Readonly<Record<Activity, string>>>> = {
  prompt: {
    resting: "turnStart ifIdle fifo onTurnComplete nextTurn queue true",
    running: "turnStart none fifo onTurnComplete nextTurn queue true",
  },
  flowStep: {
    resting: "turnStart ifIdle fifo onTurnComplete nextTurn queue true",
    running: "turnStart none fifo onTurnComplete nextTurn queue true",
  },
  externalEvent: {
    resting: "turnStart ifIdle fifo onTurnComplete nextTurn queue true",
    running: "turnStart none fifo onTurnComplete nextTurn queue true",
  },
  peerMessage: {
    resting: "turnStart ifIdle fifo onTurnComplete nextTurn queue true",
    running: "turnStart interruptYielding fifo onTurnComplete nextTurn queue true",
  },
  peerRequest: {
    resting: "turnStart ifIdle fifo onTurnComplete nextTurn queue true",
    running: "turnStart interruptYielding fifo onTurnComplete nextTurn queue true",
  },
  peerResponseProgress: {
    resting: "turnBoundary none coalesce onTurnComplete steerBatch steer true",
    running: "turnBoundary none coalesce onTurnComplete steerBatch steer true",
  },
  peerResponseTerminal: {
    resting: "turnStart ifIdle fifo onTurnComplete nextTurn queue true",
    running: "turnStart ifIdle fifo onTurnComplete nextTurn queue true",
  },
  continuation: {
    resting: "turnBoundary ifIdle fifo onTurnComplete steerBatch steer false",
    running: "turnBoundary interruptYielding fifo onTurnComplete steerBatch steer false",
  },
  operation: {
    resting: "ignore none priority onAccept ignore drop false",
    running: "ignore none priority onAccept ignore drop false",
  },
};

const payloads: Readonly<Record<string, InputPayload>> = {
  prompt: { kind: "prompt", text: "x" },
  flowStep: { kind: "flowStep", stepId: "s", instructions: "x" },
  externalEvent: { kind: "externalEvent", eventType: "e", payload: null },
  peerMessage: { kind: "peer", body: "x" },
  peerRequest: {
    kind: "peer",
    body: "x",
    convention: { type: "request", requestId: "r", intent: "ping" },
  },
  peerResponseProgress: {
    kind: "peer",
    body: "x",
    convention: { type: "responseProgress", requestId: "r", phase: "p" },
  },
  peerResponseTerminal: {
    kind: "peer",
    body: "x",
    convention: { type: "responseTerminal", requestId: "r", status: "ok" },
  },
  continuation: { kind: "continuation", reason: "x" },
  operation: { kind: "operation", operationId: "o", event: null },
};

function decide(row: string, activity: Activity, extra: object = {}, silent: string[] = []) {
  return decidePolicy({ ...payloads[row], ...extra } as InputPayload, activity, silent);
}

describe("the policy table, version 1", () => {
  it("has a row for each kind and convention, and no other", () => {
    expect(POLICY_VERSION).toBe(1);
    expect(Object.keys(policyTable).sort()).toEqual(Object.keys(expected).sort());
    expect(Object.keys(payloads).sort()).toEqual(Object.keys(expected).sort());
  });

  for (const [row, by] of Object.entries(expected)) {
    for (const activity of ["resting", "running"] as const) {
      it(`${row}, while the session is ${activity}: ${by[activity]}`, () => {
        const { decision, version } = decide(row, activity);
        expect(version).toBe(1);
        expect(Object.values(decision).join(" ")).toBe(by[activity]);
      });
    }
  }

  const handled: readonly (readonly [Activity, "queue" | "steer", string])[] = [
    ["resting", "queue", "turnStart ifIdle fifo onTurnComplete nextTurn queue true"],
    ["running", "queue", "turnStart none fifo onTurnComplete nextTurn queue true"],
    ["resting", "steer", "turnBoundary ifIdle fifo onTurnComplete steerBatch steer true"],
    [
      "running",
      "steer",
      "turnBoundary interruptYielding fifo onTurnComplete steerBatch steer true",
    ],
  ];
  for (const row of ["prompt", "flowStep", "externalEvent", "peerMessage", "peerRequest"]) {
    for (const [activity, handling, decision] of handled) {
      it(`${row} with handling ${handling}, while ${activity}: ${decision}`, () => {
        expect(Object.values(decide(row, activity, { handling }).decision).join(" ")).toBe(
          decision,
        );
      });
    }
  }

  it("a continuation that is to be queued is, and stays out of the transcript", () => {
    expect(
      Object.values(decide("continuation", "running", { handling: "queue" }).decision).join(" "),
    ).toBe("turnStart none fifo onTurnComplete nextTurn queue false");
  });

  it("a terminal response opens a turn of its own however it is handled", () => {
    expect(decide("peerResponseTerminal", "running", { handling: "steer" }).decision).toMatchObject(
      {
        apply: "turnStart",
        route: "steer",
      },
    );
  });

  it("a request of a silent intent does not wake; other requests do", () => {
    for (const activity of ["resting", "running"] as const) {
      expect(decide("peerRequest", activity, {}, ["ping"]).decision).toMatchObject({
        apply: "turnStart",
        wake: "none",
      });
      expect(decide("peerRequest", activity, {}, ["other"]).decision.wake).not.toBe("none");
    }
    expect(decide("peerMessage", "resting", {}, ["ping"]).decision.wake).toBe("ifIdle");
  });
});

describe("the semantics stamp", () => {
  const stamps: Readonly<Record<string, object>> = {
    prompt: { boundary: "turnStart", execution: "contentTurn" },
    peerResponseProgress: { boundary: "turnCheckpoint", execution: "contentTurn" },
    peerResponseTerminal: {
      boundary: "turnStart",
      execution: "contentTurn",
      terminalIntent: "ok",
    },
    continuation: { boundary: "turnCheckpoint", execution: "resumePending" },
  };
  for (const [row, stamp] of Object.entries(stamps)) {
    it(`of a ${row} follows from its policy and kind`, () => {
      const payload = payloads[row];
      if (payload === undefined) throw new Error(row);
      expect(semanticsStamp(decide(row, "resting"), payload)).toEqual(stamp);
    });
  }

  it("of content that is applied at once has an immediate boundary", () => {
    const policy = decide("prompt", "resting");
    const now = { ...policy, decision: { ...policy.decision, apply: "now" as const } };
    expect(semanticsStamp(now, { kind: "prompt", text: "x" }).boundary).toBe("immediate");
  });
});

describe("the scope in which a newer input takes an older one's place", () => {
  it("is the kind and the supersession key; progress reports have one by their request", () => {
    const scope = (row: string, key?: string) => {
      const payload = payloads[row];
      if (payload === undefined) throw new Error(row);
      return replacementScope(payload, key);
    };
    expect(scope("prompt")).toBeUndefined();
    expect(scope("prompt", "k")).toBe(scope("prompt", "k"));
    expect(scope("prompt", "k")).not.toBe(scope("flowStep", "k"));
    expect(scope("prompt", "k")).not.toBe(scope("prompt", "l"));
    expect(scope("peerResponseProgress")).toBeDefined();
    expect(scope("peerMessage")).toBeUndefined();
    expect(scope("peerMessage", "progress")).not.toBe(scope("peerResponseProgress"));
  });
});
