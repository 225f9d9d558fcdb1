/**
 * A workflow definition as it is after parsing: everything checked, every reference resolved to
 * something that exists. The JSON form (`holdfast.workflow/v1`) writes the same with snake_case
 * names; `parse-definition.ts` reads it, `docs/workflow.schema.json` describes it for editors.
 */
import type { OrderedJson, OrderedObject } from "../../store/ordered-json.js";
import type { JsonObject } from "../../store/port.js";

export const WORKFLOW_SCHEMA = "holdfast.workflow/v1";

export interface WorkflowDefinition {
  readonly schema: typeof WORKFLOW_SCHEMA;
  readonly id: string;
  /** Names this text of the workflow. A run goes on only under the revision it began with. */
  readonly revision: string;
  readonly title?: string;
  /** The state a run begins with, before what its caller gives. The order of names counts. */
  readonly state: OrderedObject;
  /** Names that must be in the state once the caller's values are laid over the defaults. */
  readonly required: readonly string[];
  /** How writes of one parallel group to one name are combined. Others are `reject_concurrent`. */
  readonly reducers: ReadonlyMap<string, Reducer>;
  readonly entry: string;
  readonly nodes: ReadonlyMap<string, WorkflowNode>;
  /** By node. A node without a route ends the run. */
  readonly routes: ReadonlyMap<string, Route>;
  /** SHA-256 of the canonical text, in hex: two definitions with one digest mean the same. */
  readonly digest: string;
}

export type Reducer = "reject_concurrent" | "last_write" | "collect" | "merge" | "sum";

export interface WorkflowNode {
  readonly id: string;
  readonly title?: string;
  readonly step: Step;
  /** Time from entering the node until it fails with a timeout, in milliseconds. */
  readonly deadlineMs?: number;
  /** Where the run goes when the step fails or times out. Without it the run fails. */
  readonly onFailure?: string;
}

export type Step = StateStep | InputStep | ActionStep | TurnStep | WaitStep;

/** Computes new state. Pure, so it may be computed again after a crash. */
export interface StateStep {
  readonly kind: "state";
  readonly mutations: readonly Mutation[];
}

/** Asks somebody outside and waits for the answer. */
export interface InputStep {
  readonly kind: "input";
  readonly message: readonly MessageBlock[];
  /** JSON Schema of the answer. */
  readonly schema?: JsonObject;
  /** Name in the state that takes the answer. */
  readonly target?: string;
}

/** Calls a named function of the host. Not called again once its result is durable. */
export interface ActionStep {
  readonly kind: "action";
  readonly action: string;
  readonly input?: Value;
  readonly target?: string;
  readonly retry?: RetryPolicy;
}

/** Sends a prompt to a session, once, and waits until it has been answered. */
export interface TurnStep {
  readonly kind: "turn";
  /** Id of the session, a string. */
  readonly session: Value;
  /** The prompt, a string. */
  readonly prompt: Value;
  readonly target?: string;
}

/** Waits for a time. What is overdue after a restart goes on at once. */
export interface WaitStep {
  readonly kind: "wait";
  /** A duration in milliseconds, or an instant as ISO 8601 text. */
  readonly until: { readonly forMs: Value } | { readonly at: Value };
}

export type MessageBlock =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly value: Value };

export type Value =
  | { readonly kind: "literal"; readonly value: OrderedJson }
  /** A JSON pointer (RFC 6901) into the state. */
  | { readonly kind: "state"; readonly pointer: string }
  /** JSONata over the state, bounded in time and steps. */
  | { readonly kind: "expression"; readonly expression: string };

export type Mutation =
  | {
      readonly kind: "assign" | "append" | "merge";
      readonly target: string;
      readonly value: Value;
    }
  | { readonly kind: "remove"; readonly target: string };

export interface RetryPolicy {
  /** Calls in all, the first included. */
  readonly attemptsMax: number;
  /** First and largest pause between calls, in milliseconds; it doubles from one to the other. */
  readonly pauseMinMs: number;
  readonly pauseMaxMs: number;
}

export type Route = FirstRoute | AllRoute;

/** Goes on with the first branch whose condition holds; the run fails when none does. */
export interface FirstRoute {
  readonly mode: "first";
  readonly branches: readonly Branch[];
}

/**
 * Goes on with every branch whose condition holds, as one parallel group: its nodes run side by
 * side and are joined at one barrier, after which the run goes on at `join`.
 */
export interface AllRoute {
  readonly mode: "all";
  readonly branches: readonly (Branch & { readonly target: NodeTarget })[];
  readonly join: Target;
  /** Nodes of the group that run at the same time. */
  readonly maxParallel: number;
}

export interface Branch {
  /** Absent: always. */
  readonly condition?: Condition;
  readonly target: Target;
}

export type Target = NodeTarget | { readonly kind: "end" };

export interface NodeTarget {
  readonly kind: "node";
  readonly id: string;
}

export type Condition =
  | { readonly kind: "expression"; readonly expression: string }
  /** A function of the host, with an input. */
  | { readonly kind: "named"; readonly name: string; readonly input?: Value };
