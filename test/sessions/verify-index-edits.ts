/** Edits of indexes, sessions and journals, and what they break. */
import { keys } from "../../src/sessions/records.js";
import type { JsonValue, Key } from "../../src/store/index.js";
import { type Edit, found } from "./verify-edits.js";

const journal = (session: string, sequence: number): Key => [
  "journal",
  ...keys.session(session),
  String(sequence).padStart(20, "0"),
];

export const indexEdits: readonly Edit[] = [
  [
    "the index row of an input is gone",
    async (rows) => {
      await rows.remove(keys.inputId("work", await rows.idOf(1)));
      return found("I9", keys.input("work", 1));
    },
  ],
  [
    "an index row names an input that is not there",
    async (rows) => {
      await rows.put(keys.inputId("work", "nobody"), { sequence: 99 });
      return found("I9", keys.inputId("work", "nobody"));
    },
  ],
  [
    "a key names another input",
    async (rows) => {
      const other = await rows.value(keys.idempotency("work", "key-two"));
      await rows.put(keys.idempotency("work", "key-one"), other);
      return found("I9", keys.idempotency("work", "key-one"));
    },
  ],
  [
    "a key has the digest of another payload",
    async (rows) => {
      await rows.set(keys.idempotency("work", "key-one"), "digest", "00");
      return found("I10", keys.idempotency("work", "key-one"));
    },
  ],
  [
    "the key of a waiting input is gone",
    async (rows) => {
      await rows.remove(keys.idempotency("waiting", "key-y"));
      return found("I10", keys.input("waiting", 1));
    },
  ],
  [
    "two inputs wait under one key",
    async (rows) => {
      await rows.set(keys.input("waiting", 1), "header.idempotencyKey", "key-x");
      return found("I10", keys.input("waiting", 1));
    },
  ],
  [
    "the key of an input that waits says that it has ended",
    async (rows) => {
      await rows.set(keys.idempotency("waiting", "key-y"), "endedAtMs", 1);
      return found("I10", keys.input("waiting", 1));
    },
  ],
  [
    "an ended key is not listed by its end",
    async (rows) => {
      const [first = []] = await rows.under(keys.endedKeys("work"));
      await rows.remove(first);
      return found("I9", keys.idempotency("work", "key-zero"));
    },
  ],
  [
    "the list of ended keys names a key that is not there",
    async (rows) => {
      await rows.put(keys.endedKey("work", 99), { key: "nobody", endedAtMs: 1 });
      return found("I9", keys.endedKey("work", 99));
    },
  ],
  [
    "a session with work is not among the active ones",
    async (rows) => {
      await rows.remove(keys.active("waiting"));
      return found("I20", keys.active("waiting"));
    },
  ],
  [
    "a session without work is among the active ones",
    async (rows) => {
      await rows.put(keys.active("work"), { since: "2026-01-01T00:00:00.000Z" });
      return found("I20", keys.active("work"));
    },
  ],
  [
    "an active session is not there at all",
    async (rows) => {
      await rows.put(keys.active("nobody"), { since: "2026-01-01T00:00:00.000Z" });
      return found("I20", keys.active("nobody"));
    },
  ],
];

const ledger = (field: string, value: JsonValue, invariant: string): Edit => [
  `the count ${field} is wrong`,
  async (rows) => {
    await rows.set(keys.session("waiting"), `ledger.${field}`, value);
    return found(invariant, keys.session("waiting"));
  },
];

export const sessionEdits: readonly Edit[] = [
  ledger("nextInput", 4, "I8"),
  ledger("nextPosition", 1, "I8"),
  ledger("firstActive", 1, "I20"),
  ledger("unfinished", 2, "I20"),
  ledger("nextMove", 9, "I8"),
  ledger("nextTranscript", 1, "I8"),
  ledger("messages", 1, "I15"),
  ledger("digest", "00", "I15"),
  ledger("endedKeys", 1, "I9"),
  ledger("nextInput", -1, "I3"),
  [
    "the count nextEndedKey is wrong",
    async (rows) => {
      await rows.set(keys.session("work"), "ledger.nextEndedKey", 0);
      return found("I9", keys.session("work"));
    },
  ],
  [
    "a session says that it is retired",
    async (rows) => {
      await rows.set(keys.session("rest"), "snapshot.value", "retired");
      return found("I31", keys.session("rest"));
    },
  ],
  [
    "a session says that it is stopped, and holds inputs",
    async (rows) => {
      await rows.set(keys.session("waiting"), "snapshot.value", "stopped");
      return found("I14", keys.session("waiting"));
    },
  ],
  [
    "a session counts another generation of executors",
    async (rows) => {
      await rows.set(keys.session("work"), "snapshot.context.generation", 9);
      return found("I31", keys.session("work"));
    },
  ],
  [
    "a running session names no turn",
    async (rows) => {
      await rows.set(keys.session("busy"), "snapshot.context.turnId", null);
      return found("I14", keys.session("busy"));
    },
  ],
  [
    "the turn in progress is gone",
    async (rows) => {
      const key = keys.turn("busy", await rows.turnOf(1, "busy"));
      await rows.remove(key);
      return found("I14", key);
    },
  ],
  [
    "the turn in progress says that it has ended",
    async (rows) => {
      const key = keys.turn("busy", await rows.turnOf(1, "busy"));
      await rows.set(key, "snapshot.value", "failed");
      return found("I14", key);
    },
  ],
  [
    "a session names another id than its key",
    async (rows) => {
      await rows.set(keys.session("rest"), "snapshot.context.sessionId", "other");
      return found("I3", keys.session("rest"));
    },
  ],
  [
    "the record of a session is gone",
    async (rows) => {
      await rows.remove(keys.session("waiting"));
      return found("I7", keys.session("waiting"));
    },
  ],
  [
    "all of a session is gone, but its moves",
    async (rows) => {
      await rows.remove(keys.session("rest"));
      return found("I7", ["journal", ...keys.session("rest")]);
    },
  ],
  [
    "the record of a session is older than its last move",
    async (rows) => {
      await rows.put(keys.session("rest"), await rows.value(keys.session("rest")));
      return found("I7", keys.session("rest"));
    },
  ],
  [
    "a move in the middle is gone",
    async (rows) => {
      await rows.remove(journal("work", 3));
      return found("I8", journal("work", 4));
    },
  ],
  [
    "the last move is gone",
    async (rows) => {
      await rows.remove(journal("waiting", 3));
      return found("I8", keys.session("waiting"));
    },
  ],
  [
    "a move goes where its chart does not",
    async (rows) => {
      await rows.set(journal("waiting", 2), "moves.1.to", "staged");
      return found("I13", journal("waiting", 2));
    },
  ],
  [
    "a move is by an event that its chart refuses",
    async (rows) => {
      await rows.set(journal("waiting", 2), "moves.1.event.type", "requeue");
      return found("I13", journal("waiting", 2));
    },
  ],
  [
    "a move is of an actor that is no part of the session",
    async (rows) => {
      await rows.set(journal("waiting", 2), "moves.1.actor", "session/other");
      return found("I13", journal("waiting", 2));
    },
  ],
  [
    "an entry of the journal holds no moves",
    async (rows) => {
      await rows.put(journal("waiting", 2), { moves: [1] });
      return found("I3", journal("waiting", 2));
    },
  ],
];
