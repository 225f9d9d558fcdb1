/**
 * What a chart must do, as data: one row for each thing it does, and the invariants that hold
 * meanwhile. Whatever no row speaks of must be refused. `judge.ts` compares a chart with its rules.
 */
import type { AnyMachineSnapshot, AnyStateMachine } from "xstate";

export interface AnyEvent {
  readonly type: string;
}

interface RowOf<C, E extends AnyEvent, T extends E["type"]> {
  readonly from: string;
  readonly on: T;
  /** The condition in words, for the title. */
  readonly when?: string;
  readonly if?: (context: C, event: Extract<E, { type: T }>) => boolean;
  /** Absent when the state stays. */
  readonly to?: string;
  /** What the context says differently; everything else must be as before. */
  readonly sets?: (context: C, event: Extract<E, { type: T }>) => Partial<C>;
  /** Named actions, all of them and in this order. */
  readonly effects?: readonly string[];
}

/** One row of a chart's table: in this state, on this event, under this condition, this happens. */
export type Row<C, E extends AnyEvent> = { [T in E["type"]]: RowOf<C, E, T> }[E["type"]];

export interface Invariant<C> {
  readonly title: string;
  readonly holds: (state: string, context: C) => boolean;
}

export interface MoveInvariant<C> {
  readonly title: string;
  readonly holds: (before: C, after: C) => boolean;
}

export interface ChartRules<C, E extends AnyEvent> {
  readonly machine: AnyStateMachine;
  /** The inputs to explore from, each with its name. */
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly initial: { readonly state: string; readonly context: (input: never) => C };
  readonly finals: readonly string[];
  readonly events: (context: C) => readonly E[];
  readonly project: (context: C) => unknown;
  readonly rows: readonly Row<C, E>[];
  /** What every accepted event adds to the context, on top of its row. */
  readonly everyMove?: (context: C, event: E, from: string, to: string) => Partial<C>;
  readonly invariants: readonly Invariant<C>[];
  readonly moves: readonly MoveInvariant<C>[];
  /** States down, event types across: `+` accepted, `.` refused, `?` as the payload or context say. */
  readonly accepts: string;
}

export function titleOf<C, E extends AnyEvent>(row: Row<C, E>): string {
  const condition = row.when === undefined ? "" : `, ${row.when}`;
  return `${row.from}, ${row.on}${condition} → ${row.to ?? "stays"}`;
}

export function stateOf(snapshot: AnyMachineSnapshot): string {
  return typeof snapshot.value === "string" ? snapshot.value : JSON.stringify(snapshot.value);
}

/** The lines of a table written as text, as cells. */
export function cellsOf(table: string): readonly (readonly string[])[] {
  const lines = table.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => line.trim().split(/\s+/));
}
