/** A write to the state of a run, its value computed: what a step stages and a barrier applies. */
import type { OrderedJson } from "../../store/ordered-json.js";

export type Write =
  | {
      readonly kind: "assign" | "append" | "merge";
      readonly target: string;
      readonly value: OrderedJson;
    }
  | { readonly kind: "remove"; readonly target: string };

/** The writes of one node, in their order. */
export interface NodeWrites {
  readonly node: string;
  readonly writes: readonly Write[];
}
