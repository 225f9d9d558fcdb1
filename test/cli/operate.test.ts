/** `sessions stop` and its like, `--steer` and `--key`: what changes a session from outside. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exitCodes } from "../../src/cli/exit-codes.js";
import { type Operation, operations } from "../../src/cli/operations.js";
import { Directory, echo, type JsonLine } from "./run-cli.js";

let directory: Directory;

beforeEach(async () => {
  directory = new Directory();
  await directory.run(["session", "guest-1"], "one\ntwo\n");
});
afterEach(() => directory.remove());

async function phases(): Promise<readonly unknown[]> {
  const { values } = await directory.json(["inputs", "list", "guest-1"]);
  return values.map(({ phase }) => phase);
}

async function state(): Promise<unknown> {
  const { values } = await directory.json(["sessions", "show", "guest-1"]);
  return values[0]?.state;
}

interface Row {
  readonly report: JsonLine;
  readonly text: string;
  readonly state: string;
  readonly phases: readonly string[];
}

const givenUp = ["abandoned", "abandoned"];
const expected: Readonly<Record<Operation, Row>> = {
  retire: {
    report: { abandoned: 2, pendingDrain: 0 },
    text: "guest-1  retire done, now retired, 2 inputs given up, 0 inputs still to be drained\n",
    state: "retired",
    phases: givenUp,
  },
  reset: {
    report: { abandoned: 2 },
    text: "guest-1  reset done, now idle, 2 inputs given up\n",
    state: "idle",
    phases: givenUp,
  },
  recycle: {
    report: { transferred: 2 },
    text: "guest-1  recycle done, now idle, 2 inputs waiting\n",
    state: "idle",
    phases: ["queued", "queued"],
  },
  stop: {
    report: { abandoned: 2 },
    text: "guest-1  stop done, now stopped, 2 inputs given up\n",
    state: "stopped",
    phases: givenUp,
  },
  unregister: {
    report: {},
    text: "guest-1  unregister done, now idle\n",
    state: "idle",
    phases: ["queued", "queued"],
  },
  destroy: {
    report: { abandoned: 2 },
    text: "guest-1  destroy done, now destroyed, 2 inputs given up\n",
    state: "destroyed",
    phases: givenUp,
  },
};

describe.each(Object.keys(operations) as Operation[])("sessions %s", (operation) => {
  const row = expected[operation];
  const sure = operation === "destroy" ? ["--yes"] : [];

  it("changes the session and says what became of its inputs", async () => {
    const run = await directory.run(["sessions", operation, "guest", ...sure]);
    expect(run).toEqual({ code: exitCodes.ok, signal: null, stderr: "", stdout: row.text });
    expect([await state(), await phases()]).toEqual([row.state, row.phases]);
    const { values } = await directory.json(["store", "verify"]);
    expect(values).toMatchObject([{ type: "verified", findings: 0 }]);
  });

  it("gives the same as JSON", async () => {
    const { values } = await directory.json(["sessions", operation, "guest-1", ...sure]);
    expect(values).toEqual([{ id: "guest-1", operation, state: row.state, ...row.report }]);
  });

  it("of a session that is not there ends with `notFound`, and changes nothing", async () => {
    const run = await directory.run(["sessions", operation, "nobody", ...sure]);
    expect(run).toMatchObject({ code: exitCodes.notFound, stdout: "" });
    expect(await phases()).toEqual(["queued", "queued"]);
  });
});

describe("sessions destroy", () => {
  it("asks nobody where nobody can answer: without --yes it is refused", async () => {
    const run = await directory.run(["sessions", "destroy", "guest-1"]);
    expect(run).toMatchObject({ code: exitCodes.usage, stdout: "" });
    expect(run.stderr).toContain("--yes");
    expect([await state(), await phases()]).toEqual(["idle", ["queued", "queued"]]);
  });

  it("leaves nothing to operate on; an input begins the session anew, after what it had", async () => {
    await directory.run(["sessions", "destroy", "guest-1", "--yes"]);
    const again = await directory.run(["sessions", "reset", "guest-1"]);
    expect(again).toMatchObject({ code: exitCodes.notReady, stdout: "" });
    expect(await state()).toBe("destroyed");
    expect((await directory.run(["session", "guest-1"], "three\n")).code).toBe(exitCodes.ok);
    expect(await phases()).toEqual([...givenUp, "queued"]);
  });
});

describe("a session after", () => {
  it("`stop` is taken into service again by `session`", async () => {
    await directory.run(["sessions", "stop", "guest-1"]);
    const run = await directory.json(["session", "guest-1", "--exec", ...echo], "three\n");
    expect(run.values.at(-1)).toMatchObject({ accepted: 1, completed: 1 });
  });

  it("`retire` takes no input until it is reset", async () => {
    await directory.run(["sessions", "retire", "guest-1"]);
    expect((await directory.run(["session", "guest-1"], "three\n")).code).toBe(exitCodes.notReady);
    await directory.run(["sessions", "reset", "guest-1"]);
    const run = await directory.json(["session", "guest-1", "--exec", ...echo], "three\n");
    expect(run.values.at(-1)).toMatchObject({ accepted: 1, completed: 1 });
  });
});

describe("session --key", () => {
  it("gives each line without a key the prefix and its number, so a rerun does nothing", async () => {
    const lines = 'a\n{"text":"b","idempotencyKey":"own"}\n\nc\n';
    const words = ["session", "s", "--key", "import-7", "--exec", ...echo];
    const first = await directory.json(words, lines);
    const accepted = first.values.filter(({ type }) => type === "accepted");
    expect(accepted.map(({ idempotencyKey }) => idempotencyKey)).toEqual([
      "import-7:1",
      "own",
      "import-7:4",
    ]);
    const second = await directory.json(words, lines);
    expect(second.values.at(-1)).toMatchObject({ accepted: 0, deduplicated: 3 });
  });

  it("of no text, or of too much, is refused before a store is made", async () => {
    for (const key of ["", "k".repeat(2_000)]) {
      const words = ["session", "s", "--store", "fresh", "--key", key];
      expect(await directory.run(words, "a\n")).toMatchObject({ code: exitCodes.usage });
    }
    expect((await directory.run(["sessions", "list", "--store", "fresh"])).code).toBe(
      exitCodes.notFound,
    );
  });
});

describe("session --steer", () => {
  it("sends prompts before what waits; what says otherwise, and other kinds, as they are", async () => {
    const lines = [
      "steered",
      '{"text":"in order","handling":"queue"}',
      '{"kind":"externalEvent","eventType":"paid","payload":1}',
    ];
    await directory.run(["session", "guest-1", "--steer"], lines.join("\n"));
    const { values } = await directory.json(["inputs", "list", "guest-1"]);
    const handlings = values.map(({ payload }) => (payload as { handling?: string }).handling);
    expect(handlings).toEqual([undefined, undefined, "steer", "queue", undefined]);
  });
});
