/** The public face of holdfast. */
export type { AbandonReason, InputOutcome } from "../machines/input.js";
export type { CloseMode } from "../machines/supervisor.js";
export type { TurnBoundary } from "../machines/turn.js";
export { type Blob, type BlobId, type BlobStore, blobIdOf } from "./blobs/blob-store.js";
export { fileBlobStore } from "./blobs/files.js";
export { memoryBlobStore } from "./blobs/memory.js";
export {
  AssertionError,
  BusyError,
  CapacityError,
  ClosedError,
  ConflictError,
  CorruptionError,
  DestroyedError,
  ExecutorError,
  HoldfastError,
  IdempotencyConflictError,
  isHoldfastError,
  NotFoundError,
  NotReadyError,
  OperationError,
  SessionIdMismatchError,
  StoreConflict,
  StoreError,
  StoreFenced,
  StoreLocked,
  StoreSerialization,
  StoreUnavailable,
  TransitionError,
  ValidationError,
  type ValidationIssue,
} from "./errors.js";
export type { Clock } from "./kernel/clock.js";
export type { Ids } from "./kernel/ids.js";
export type { Logger } from "./kernel/logger.js";
export { defaultLimits, type Limits } from "./limits.js";
export type { Admission } from "./sessions/admission.js";
export type { Completion } from "./sessions/completion.js";
export type { ContextReceipt, ContextRequest } from "./sessions/context.js";
export {
  type ChatDelta,
  type ChatOptions,
  type ChatTool,
  chatExecutor,
} from "./sessions/executors/chat-executor.js";
export { type CommandOptions, commandExecutor } from "./sessions/executors/command-executor.js";
export type {
  Executor,
  ExecutorSource,
  TranscriptReader,
  TurnInputView,
  TurnRequest,
  TurnResult,
} from "./sessions/executors/executor.js";
export { functionExecutor } from "./sessions/executors/function-executor.js";
export type {
  InputFilter,
  Page,
  Session,
  SessionView,
  TranscriptItem,
} from "./sessions/handle.js";
export type {
  Block,
  ContinuationRequest,
  Durability,
  ExternalEventRequest,
  FlowStepRequest,
  Handling,
  InlineImage,
  InputHeader,
  InputKind,
  InputOrigin,
  InputPayload,
  InputRequest,
  InputView,
  OperationRequest,
  PeerConvention,
  PeerRequest,
  PromptRequest,
  StoredImage,
  TextBlock,
} from "./sessions/input.js";
export type { AbandonReport, RecycleReport, RetireReport } from "./sessions/operations.js";
export type { SessionOptions } from "./sessions/options.js";
export {
  type Policy,
  type PolicyDecision,
  policyTable,
  type SemanticsStamp,
} from "./sessions/policy.js";
export type { BoundaryReceipt, Message, TranscriptEntry } from "./sessions/records.js";
export type { RecoveryReport } from "./sessions/recovery.js";
export type { SessionSchemas } from "./sessions/schema.js";
export {
  PeerChannel,
  type PeerIngress,
  type PeerMessage,
} from "./sessions/service/peer-channel.js";
export {
  type CreateSessionRequest,
  type SessionService,
  serviceExecutor,
} from "./sessions/service/service.js";
export {
  type RespondRequest,
  type SessionHost,
  StoredSessionService,
} from "./sessions/service/stored-service.js";
export type { CloseReport } from "./supervisor/drain.js";
export type { MaterializeOptions } from "./supervisor/materialize.js";
export type { SessionPage, Sessions } from "./supervisor/sessions.js";
export { type CloseOptions, Supervisor, type SupervisorOptions } from "./supervisor/supervisor.js";
