/** The kit for testing charts, stores and what is built on them (`holdfast/testing`). */
export { failingStore } from "../store/failing.js";
export type { FailingStore, Fault, FaultRule } from "../store/faults.js";
export {
  type ChartArm,
  type ExploredState,
  type ExploredStep,
  type ExploreOptions,
  exploreMachine,
} from "./explore.js";
export { type StoreConformanceOptions, storeConformance } from "./store/conformance.js";
