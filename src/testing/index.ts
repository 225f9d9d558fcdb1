/** The kit for testing charts, stores and what is built on them (`holdfast/testing`). */
export { type FailingStore, type Fault, type FaultRule, failingStore } from "../store/failing.js";
export {
  type ChartArm,
  type ExploredState,
  type ExploredStep,
  type ExploreOptions,
  exploreMachine,
} from "./explore.js";
export { type StoreConformanceOptions, storeConformance } from "./store/conformance.js";
