/** Edits of single rows, and what they break: the invariant, and the row where it is told. */
import { keys } from "../../src/sessions/records.js";
import type { JsonValue, Key } from "../../src/store/index.js";
import type { Edited } from "./verify-world.js";

export type Edit = readonly [
  what: string,
  edit: (rows: Edited) => Promise<{ readonly invariant: string; readonly key: Key }>,
];

export const found = (invariant: string, key: Key) => ({ invariant, key });

export const receiptEdits: readonly Edit[] = [
  [
    "a receipt is gone, told at its input",
    async (rows) => {
      await rows.remove(keys.receipt("work", await rows.turnOf(1), 0));
      return found("I15", keys.input("work", 1));
    },
  ],
  [
    "a receipt is gone, told at its turn",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      await rows.remove(key);
      return found("I16", key);
    },
  ],
  [
    "a receipt no longer lists its input",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      await rows.set(key, "inputIds", [await rows.idOf(0)]);
      return found("I15", keys.input("work", 1));
    },
  ],
  [
    "an input is in two receipts",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      await rows.set(key, "inputIds", [await rows.idOf(1), await rows.idOf(0)]);
      return found("I16", key);
    },
  ],
  [
    "a receipt lists an input twice",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      await rows.set(key, "inputIds", [await rows.idOf(1), await rows.idOf(1)]);
      return found("I16", key);
    },
  ],
  [
    "a receipt lists an input that is not known",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      await rows.set(key, "inputIds", [await rows.idOf(1), "nobody"]);
      return found("I15", key);
    },
  ],
  [
    "a receipt lists an input that still waits",
    async (rows) => {
      const key = keys.receipt("busy", await rows.turnOf(0, "busy"), 0);
      await rows.set(key, "inputIds", [await rows.idOf(0, "busy"), await rows.idOf(2, "busy")]);
      return found("I15", key);
    },
  ],
  [
    "a turn has a second receipt and no first",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      const later = keys.receipt("work", await rows.turnOf(1), 1);
      await rows.put(later, { ...(await rows.value(key)), sequence: 1 });
      await rows.remove(key);
      return found("I16", later);
    },
  ],
  [
    "a receipt names another turn than its key",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      await rows.set(key, "turnId", "other");
      return found("I2", key);
    },
  ],
  [
    "a receipt is no object",
    async (rows) => {
      const key = keys.receipt("work", await rows.turnOf(1), 0);
      await rows.put(key, null);
      return found("I1", key);
    },
  ],
  [
    "a completed turn held other inputs than were consumed",
    async (rows) => {
      const key = keys.turn("work", await rows.turnOf(1));
      await rows.set(key, "snapshot.context.inputIds", [await rows.idOf(1), await rows.idOf(2)]);
      return found("I15", key);
    },
  ],
  [
    "a turn with a receipt is gone",
    async (rows) => {
      const turnId = await rows.turnOf(1);
      await rows.remove(keys.turn("work", turnId));
      return found("I15", keys.receipt("work", turnId, 0));
    },
  ],
  [
    "a message was changed",
    async (rows) => {
      const key = keys.transcriptEntry("work", 1);
      await rows.set(key, "messages.0.content", "something else");
      return found("I15", key);
    },
  ],
  [
    "an entry of the transcript is gone",
    async (rows) => {
      await rows.remove(keys.transcriptEntry("work", 1));
      return found("I8", keys.transcriptEntry("work", 2));
    },
  ],
];

export const inputEdits: readonly Edit[] = [
  [
    "an input in the middle is gone",
    async (rows) => {
      await rows.remove(keys.input("work", 1));
      return found("I8", keys.input("work", 2));
    },
  ],
  [
    "the last input is gone",
    async (rows) => {
      await rows.remove(keys.input("waiting", 2));
      return found("I8", keys.session("waiting"));
    },
  ],
  [
    "a consumed input says that it waits",
    async (rows) => {
      await rows.set(keys.input("work", 1), "snapshot.value", "queued");
      return found("I3", keys.input("work", 1));
    },
  ],
  [
    "an input is in a state that its chart does not have",
    async (rows) => {
      await rows.set(keys.input("work", 1), "snapshot.value", "eaten");
      return found("I3", keys.input("work", 1));
    },
  ],
  [
    "a waiting input says that it was abandoned",
    async (rows) => {
      const key = keys.input("waiting", 1);
      await rows.set(key, "snapshot.value", "abandoned");
      await rows.set(key, "snapshot.context.outcome", {
        type: "abandoned",
        reason: { code: "cancelled" },
      });
      return found("I31", key);
    },
  ],
  [
    "a staged input names another turn",
    async (rows) => {
      await rows.set(keys.input("busy", 1), "snapshot.context.lastTurnId", "other");
      return found("I14", keys.input("busy", 1));
    },
  ],
  [
    "the turn in progress holds an input that is not staged",
    async (rows) => {
      const key = keys.turn("busy", await rows.turnOf(1, "busy"));
      await rows.set(key, "snapshot.context.inputIds", [await rows.idOf(2, "busy")]);
      return found("I14", key);
    },
  ],
  [
    "an input counts more attempts than it may have",
    async (rows) => {
      await rows.set(keys.input("work", 1), "snapshot.context.attempts", 4);
      return found("I17", keys.input("work", 1));
    },
  ],
  [
    "an input counts fewer attempts than it was given to turns",
    async (rows) => {
      await rows.set(keys.input("work", 4), "snapshot.context.attempts", 2);
      return found("I17", keys.input("work", 4));
    },
  ],
  [
    "a step is missing in the history of an input",
    async (rows) => {
      const key = keys.input("work", 1);
      const { snapshot } = (await rows.value(key)) as {
        readonly snapshot: { readonly context: { readonly history: readonly JsonValue[] } };
      };
      const { history } = snapshot.context;
      await rows.set(key, "snapshot.context.history", history.toSpliced(1, 1));
      return found("I13", key);
    },
  ],
  [
    "an input stands under the sequence of another",
    async (rows) => {
      await rows.put(keys.input("work", 1), await rows.value(keys.input("work", 2)));
      return found("I3", keys.input("work", 1));
    },
  ],
  [
    "an input has no header",
    async (rows) => {
      await rows.set(keys.input("work", 1), "header", null);
      return found("I3", keys.input("work", 1));
    },
  ],
];
