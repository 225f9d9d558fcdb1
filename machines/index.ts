/** The charts of holdfast: pure, drawable, and usable with any XState tool. */
export {
  type AbandonReason,
  type InputContext,
  type InputEvent,
  type InputInput,
  type InputMove,
  type InputOutcome,
  inputMachine,
} from "./input.js";
export {
  type ActiveNode,
  type NodeEntry,
  type NodeKind,
  type RouteOrigin,
  type RunContext,
  type RunEvent,
  type RunFailure,
  type RunInput,
  type RunScope,
  runMachine,
} from "./run.js";
export {
  type Registration,
  type SessionContext,
  type SessionEvent,
  type SessionInput,
  sessionMachine,
} from "./session.js";
export {
  type CloseMode,
  type SupervisorContext,
  type SupervisorEvent,
  supervisorMachine,
} from "./supervisor.js";
export {
  type TurnBoundary,
  type TurnContext,
  type TurnEvent,
  type TurnInput,
  turnMachine,
} from "./turn.js";
