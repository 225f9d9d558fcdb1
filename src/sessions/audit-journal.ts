/**
 * The audit of a session's journal: the kept moves are contiguous, each is one that its chart makes,
 * and together they lead to what the rows say. Of an actor whose first moves are no longer kept only
 * the states are compared. The journal is bounded, so one session's actors fit into memory.
 */
import { isDeepStrictEqual } from "node:util";
import { inputMachine } from "../../machines/input.js";
import { sessionMachine } from "../../machines/session.js";
import { turnMachine } from "../../machines/turn.js";
import { journalKey } from "../kernel/journal.js";
import {
  type AnyStateMachine,
  encodeSnapshot,
  initialSnapshot,
  restoreSnapshot,
  type StoredSnapshot,
  stateName,
  step,
} from "../kernel/xstate.js";
import type { JsonObject, JsonValue, Key, StateStore, StoredRecord } from "../store/port.js";
import { auditedRow, isObject, judged, judgeRows, type Report } from "./audit-rows.js";
import { encodeSessionSnapshot, isForgotten, keys } from "./records.js";

/** What the session's own record is compared with. */
export interface JournalTotals {
  /** The sequence after the last entry. */
  readonly end: number;
  /** The operation that wrote the last entry. */
  readonly operation: string | undefined;
}

/** Reads the journal of one session and follows each actor through it. */
export async function auditJournal(
  store: StateStore,
  id: string,
  report: Report,
): Promise<JournalTotals> {
  const replay = new Replay(store, id, report);
  let expected: number | undefined;
  let operation: string | undefined;
  const prefix = journalKey(keys.session(id), 0).slice(0, -1);
  await judgeRows(store, prefix, report, async ({ key, record }) => {
    const sequence = Number(key.at(-1));
    if (expected !== undefined && sequence !== expected) {
      report({ invariant: "I8", key, found: `move ${expected} before it is missing` });
      replay.forget();
    }
    expected = sequence + 1;
    operation = record?.operation;
    if (record === undefined) replay.forget();
    else for (const move of movesOf(record, report)) await replay.take(key, move);
  });
  await judged(prefix, report, () => replay.compare());
  return { end: expected ?? 0, operation };
}

interface JournalMove {
  readonly actor: string;
  readonly from: string;
  readonly to: string;
  readonly event: JsonObject & { readonly type: string };
}

function movesOf(record: StoredRecord, report: Report): readonly JournalMove[] {
  const moves = isObject(record.value) ? record.value.moves : undefined;
  if (Array.isArray(moves) && moves.every(isMove)) return moves as unknown as JournalMove[];
  report({ invariant: "I3", key: record.key, found: "it holds no moves" });
  return [];
}

function isMove(value: JsonValue): boolean {
  if (!isObject(value) || !isObject(value.event)) return false;
  const { actor, from, to, event } = value;
  return [actor, from, to, event.type].every((part) => typeof part === "string");
}

type Snapshot = ReturnType<typeof restoreSnapshot>;

/** An actor on its way through the journal. */
interface Track {
  readonly machine: AnyStateMachine;
  readonly key: Key;
  /** What its row says; `undefined` where there is no row to compare with. */
  readonly stored: StoredSnapshot | undefined;
  /** `undefined`: its beginning is not kept. */
  snapshot: Snapshot | undefined;
  state: string;
}

class Replay {
  readonly #store: StateStore;
  readonly #id: string;
  readonly #report: Report;
  readonly #tracks = new Map<string, Track>();

  constructor(store: StateStore, id: string, report: Report) {
    this.#store = store;
    this.#id = id;
    this.#report = report;
  }

  /** Moves are missing from here: nothing before tells what comes after. */
  forget(): void {
    this.#tracks.clear();
  }

  async take(key: Key, move: JournalMove): Promise<void> {
    const say = (found: string) => this.#report({ invariant: "I13", key, found });
    const known = this.#tracks.get(move.actor);
    const track = known ?? (await this.#begin(move));
    if (track === undefined) return say(`it moves ${move.actor}, which is no part of the session`);
    this.#tracks.set(move.actor, track);
    if (move.from === "") return restart(track, move);
    if (known !== undefined && known.state !== move.from) {
      say(`it moves ${move.actor} from ${move.from}, where it was ${known.state}`);
    }
    follow(track, move, say);
  }

  /** Compares where the moves lead with what the rows say. */
  compare(): void {
    for (const [actor, { key, stored, snapshot, state, machine }] of this.#tracks) {
      if (stored === undefined) continue;
      const say = (found: string) => this.#report({ invariant: "I31", key, found });
      const isSession = machine === sessionMachine;
      const told = isSession && state === "attached" ? "idle" : state;
      if (stored.value !== told) {
        say(`the moves of ${actor} lead to ${told}, its row says ${JSON.stringify(stored.value)}`);
      } else if (snapshot !== undefined) {
        const led = encodeSnapshot(snapshot);
        const isSame = isDeepStrictEqual(
          comparable(isSession ? encodeSessionSnapshot(led) : led),
          comparable(machine === turnMachine ? withoutStaged(stored, led) : stored),
        );
        if (!isSame) say(`the moves of ${actor} lead to another context than that of its row`);
      }
    }
  }

  async #begin({ actor, from }: JournalMove): Promise<Track | undefined> {
    const own = `session/${this.#id}`;
    if (actor === own) {
      const key = keys.session(this.#id);
      const stored = snapshotOf(await auditedRow(this.#store, key));
      return { machine: sessionMachine, key, stored, snapshot: undefined, state: from };
    }
    if (actor.startsWith(`${own}/input/`))
      return this.#beginInput(actor.slice(own.length + 7), from);
    if (actor.startsWith(`${own}/turn/`)) return this.#beginTurn(actor.slice(own.length + 6), from);
    return undefined;
  }

  async #beginInput(inputId: string, from: string): Promise<Track> {
    const index = await auditedRow(this.#store, keys.inputId(this.#id, inputId));
    const sequence =
      index !== undefined && index !== "unreadable" && isObject(index.value)
        ? Number(index.value.sequence)
        : Number.NaN;
    // An input whose index is gone is a finding of its own, or was forgotten with its process.
    const isKnown = Number.isSafeInteger(sequence) && sequence >= 0;
    const key = isKnown ? keys.input(this.#id, sequence) : keys.inputId(this.#id, inputId);
    const row = isKnown ? await auditedRow(this.#store, key) : undefined;
    const isThere = row !== undefined && row !== "unreadable" && !isForgotten(row);
    const stored = isThere ? snapshotOf(row) : undefined;
    const attemptsMax = isObject(stored?.context) ? stored.context.attemptsMax : undefined;
    const snapshot =
      from === inputMachine.config.initial && typeof attemptsMax === "number"
        ? initialSnapshot(inputMachine, { inputId, attemptsMax })
        : undefined;
    return { machine: inputMachine, key, stored, snapshot, state: from };
  }

  async #beginTurn(turnId: string, from: string): Promise<Track> {
    const key = keys.turn(this.#id, turnId);
    const stored = snapshotOf(await auditedRow(this.#store, key));
    // What a turn was staged with is in no move of its own; the moves tell what joined it and the rest.
    const { boundary, stagedAt } = isObject(stored?.context) ? stored.context : {};
    const made = { turnId, sessionId: this.#id, inputIds: [], boundary, stagedAt };
    const snapshot =
      from === turnMachine.config.initial && stored !== undefined
        ? initialSnapshot(turnMachine, made as never)
        : undefined;
    return { machine: turnMachine, key, stored, snapshot, state: from };
  }
}

/**
 * A process takes the session up: a new one, one as it was stored, or one that was destroyed, anew.
 * Where it found another state than the moves had led to, the record was not ours (as S-000-20 has
 * it), and nothing is known of what else it said.
 */
function restart(track: Track, { actor, to, event }: JournalMove): void {
  if (event.type === "created" || track.state === "destroyed") {
    const sessionId = actor.slice("session/".length);
    track.snapshot = initialSnapshot(sessionMachine, { sessionId }) as Snapshot;
  } else if (track.snapshot !== undefined) {
    const stored = encodeSessionSnapshot(encodeSnapshot(track.snapshot));
    track.snapshot = restoreSnapshot(sessionMachine, stored) as Snapshot;
  }
  track.state = to;
  if (track.snapshot !== undefined && stateName(track.snapshot) !== to) track.snapshot = undefined;
}

function follow(
  track: Track,
  { actor, to, event }: JournalMove,
  say: (found: string) => void,
): void {
  track.state = to;
  if (track.snapshot === undefined) return;
  const taken = step(track.machine, track.snapshot as never, event as never);
  if (taken.accepted && stateName(taken.snapshot) === to) {
    track.snapshot = taken.snapshot as Snapshot;
    return;
  }
  say(`the chart of ${actor} does not go to ${to} by ${event.type}`);
  track.snapshot = undefined;
}

function snapshotOf(row: StoredRecord | undefined | "unreadable"): StoredSnapshot | undefined {
  if (row === undefined || row === "unreadable" || !isObject(row.value)) return undefined;
  const { snapshot } = row.value;
  return isObject(snapshot) ? (snapshot as unknown as StoredSnapshot) : undefined;
}

/**
 * Silent intents are given at the making of a session, of which the journal keeps no word; and a
 * turn is begun here with all that its row holds, what joined it later included, which its receipts
 * and the inputs themselves speak for.
 */
function comparable({ value, context }: StoredSnapshot): JsonValue {
  const { silentIntents: _, inputIds: __, ...rest } = context as JsonObject;
  return JSON.parse(JSON.stringify({ value, context: rest }));
}

/** The stored turn with only those of its inputs that joined it, which come after the others. */
function withoutStaged(stored: StoredSnapshot, led: StoredSnapshot): StoredSnapshot {
  const context = stored.context as JsonObject;
  const inputIds = context.inputIds as readonly JsonValue[];
  const joined = (led.context as JsonObject).inputIds as readonly JsonValue[];
  const staged = inputIds.length - joined.length;
  return { ...stored, context: { ...context, inputIds: inputIds.slice(Math.max(0, staged)) } };
}
