/** The audit of sessions: sound after real work, and every edit of a row is found and named. */
import { beforeEach, describe, expect, it } from "vitest";
import { functionExecutor } from "../../src/index.js";
import { keys } from "../../src/sessions/records.js";
import { auditSessions, type Finding } from "../../src/sessions/verify.js";
import type { Key, StateStore } from "../../src/store/index.js";
import { UnreadableRecord } from "../../src/store/record.js";
import { acceptPrompt, World } from "../world.js";
import { inputRow } from "./stored-rows.js";
import { inputEdits, receiptEdits } from "./verify-edits.js";
import { indexEdits, sessionEdits } from "./verify-index-edits.js";
import { Edited, lastEnd, realWork } from "./verify-world.js";

let rows: Edited;

beforeEach(async () => {
  rows = new Edited((await realWork()).inner);
});

describe("an audit after real work", () => {
  it("finds nothing, and counts what is there", async () => {
    const findings: Finding[] = [];
    const counts = await auditSessions(rows.store, (finding) => findings.push(finding));
    expect(findings).toEqual([]);
    expect(counts).toMatchObject({ sessions: 4, inputs: 15, unfinished: 5 });
    expect(counts.receipts).toBe(
      (await rows.under(keys.receipts("work", "x").slice(0, -1))).length + 1,
    );
  });

  it("finds nothing after a recovery of what was cut off", async () => {
    const world = await realWork();
    const supervisor = await world.open();
    const busy = await supervisor.sessions.open("busy", {
      executor: functionExecutor(() => ({ result: 1 })),
    });
    for (const { inputId } of (await busy.inputs()).items) {
      await lastEnd(supervisor, "busy", inputId);
    }
    await supervisor.close();
    expect(await new Edited(world.inner).audit()).toEqual([]);
  });

  it("finds nothing when only the last moves are kept", async () => {
    const world = new World({ limits: { journalMovesMax: 5 } });
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("long", {
      executor: functionExecutor(() => ({ result: 1 })),
    });
    for (let count = 0; count < 100; count += 1) {
      await (await acceptPrompt(session, `${count}`)).completion;
    }
    await supervisor.close();
    rows = new Edited(world.inner);
    expect((await rows.under(["journal", "session", "long"])).length).toBeLessThan(100);
    expect(await rows.audit()).toEqual([]);
  });

  it("takes rows that another program wrote, without a record, for what they are", async () => {
    const world = new World();
    const edited = new Edited(world.inner);
    await edited.put(keys.input("foreign", 7), inputRow({ sequence: 7 }));
    expect(await edited.audit()).toEqual([]);
  });
});

describe.each([
  ["receipts and transcript", receiptEdits],
  ["inputs", inputEdits],
  ["indexes", indexEdits],
  ["sessions and their journals", sessionEdits],
])("an edit of %s", (_, edits) => {
  it.each(edits)("is found: %s", async (_, edit) => {
    const expected = await edit(rows);
    expect(await rows.audit()).toContainEqual(expect.objectContaining(expected));
  });
});

describe("a record that is unreadable", () => {
  it("is passed over, and what is beside it is judged all the same", async () => {
    await rows.remove(keys.receipt("work", await rows.turnOf(1), 0));
    const unreadable = [keys.session("work"), keys.input("work", 2), keys.active("waiting")];
    const found: Finding[] = [];
    const counts = await auditSessions(unreadableAt(rows.store, unreadable), (finding) =>
      found.push(finding),
    );
    expect(counts).toMatchObject({ sessions: 4 });
    expect(found).toContainEqual(
      expect.objectContaining({ invariant: "I15", key: keys.input("work", 1) }),
    );
    // What cannot be read is the matter of the records' own audit, and accuses nothing else.
    expect(
      found.map(({ invariant }) => invariant).filter((i) => i !== "I15" && i !== "I16"),
    ).toEqual([]);
  });
});

/** A store in which some records are damaged, as a store tells it. */
function unreadableAt(store: StateStore, damaged: readonly Key[]): StateStore {
  const isDamaged = (key: Key) => damaged.some((other) => other.join("\n") === key.join("\n"));
  const refuse = (key: Key): never => {
    throw new UnreadableRecord(key, "its checksum does not match");
  };
  return {
    load: (key) => (isDamaged(key) ? refuse(key) : store.load(key)),
    claim: (owner) => store.claim(owner),
    begin: (options) => store.begin(options),
    close: () => store.close(),
    async list(request) {
      const page = await store.list(request);
      const first = page.records.find(({ key }) => isDamaged(key));
      return first === undefined ? page : refuse(first.key);
    },
  };
}
