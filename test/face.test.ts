/** The public face: what users can import from where. A change of it is seen here first. */
import { readFileSync } from "node:fs";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import * as machines from "../machines/index.js";
import * as main from "../src/index.js";
import * as store from "../src/store/index.js";

const here = (path: string): URL => new URL(`../${path}`, import.meta.url);

/** The names that a file exports by name, sorted, with a mark on those that are types alone. */
function exportsOf(path: string): readonly string[] {
  const text = readFileSync(here(path), "utf8");
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const names: string[] = [];
  for (const node of source.statements) {
    const isList = ts.isExportDeclaration(node) && node.exportClause !== undefined;
    if (!isList || !ts.isNamedExports(node.exportClause)) {
      throw new Error(`${path} exports something else than names: ${node.getText().slice(0, 80)}`);
    }
    for (const element of node.exportClause.elements) {
      const isType = node.isTypeOnly || element.isTypeOnly;
      names.push(`${element.name.text}${isType ? " (type)" : ""}`);
    }
  }
  return names.sort();
}

const valuesOf = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !name.endsWith(" (type)"));

describe("the face", () => {
  it("has these entries", () => {
    const { exports } = JSON.parse(readFileSync(here("package.json"), "utf8"));
    expect(Object.keys(exports)).toMatchInlineSnapshot(`
      [
        ".",
        "./machines",
        "./store",
        "./testing",
        "./package.json",
      ]
    `);
  });

  it("gives from holdfast", () => {
    const names = exportsOf("src/index.ts");
    expect(valuesOf(names)).toEqual(Object.keys(main).sort());
    expect(names).toMatchInlineSnapshot(`
      [
        "AbandonReason (type)",
        "AbandonReport (type)",
        "Admission (type)",
        "AssertionError",
        "Blob (type)",
        "BlobId (type)",
        "BlobStore (type)",
        "Block (type)",
        "BoundaryReceipt (type)",
        "BusyError",
        "CapacityError",
        "ChatDelta (type)",
        "ChatOptions (type)",
        "ChatTool (type)",
        "Clock (type)",
        "CloseMode (type)",
        "CloseOptions (type)",
        "CloseReport (type)",
        "ClosedError",
        "CommandOptions (type)",
        "Completion (type)",
        "ConflictError",
        "ContextReceipt (type)",
        "ContextRequest (type)",
        "ContinuationRequest (type)",
        "CorruptionError",
        "CreateSessionRequest (type)",
        "DestroyedError",
        "Durability (type)",
        "Executor (type)",
        "ExecutorError",
        "ExecutorSource (type)",
        "ExternalEventRequest (type)",
        "FlowStepRequest (type)",
        "Handling (type)",
        "HoldfastError",
        "IdempotencyConflictError",
        "Ids (type)",
        "InlineImage (type)",
        "InputFilter (type)",
        "InputHeader (type)",
        "InputKind (type)",
        "InputOrigin (type)",
        "InputOutcome (type)",
        "InputPayload (type)",
        "InputRequest (type)",
        "InputView (type)",
        "Limits (type)",
        "Logger (type)",
        "MaterializeOptions (type)",
        "Message (type)",
        "NotFoundError",
        "NotReadyError",
        "OperationError",
        "OperationRequest (type)",
        "Page (type)",
        "PeerChannel",
        "PeerConvention (type)",
        "PeerIngress (type)",
        "PeerMessage (type)",
        "PeerRequest (type)",
        "Policy (type)",
        "PolicyDecision (type)",
        "PromptRequest (type)",
        "RecoveryReport (type)",
        "RecycleReport (type)",
        "RespondRequest (type)",
        "RetireReport (type)",
        "SemanticsStamp (type)",
        "Session (type)",
        "SessionHost (type)",
        "SessionIdMismatchError",
        "SessionOptions (type)",
        "SessionPage (type)",
        "SessionSchemas (type)",
        "SessionService (type)",
        "SessionView (type)",
        "Sessions (type)",
        "StoreConflict",
        "StoreError",
        "StoreFenced",
        "StoreLocked",
        "StoreSerialization",
        "StoreUnavailable",
        "StoredImage (type)",
        "StoredSessionService",
        "Supervisor",
        "SupervisorOptions (type)",
        "TextBlock (type)",
        "TranscriptEntry (type)",
        "TranscriptItem (type)",
        "TranscriptReader (type)",
        "TransitionError",
        "TurnBoundary (type)",
        "TurnInputView (type)",
        "TurnRequest (type)",
        "TurnResult (type)",
        "ValidationError",
        "ValidationIssue (type)",
        "blobIdOf",
        "chatExecutor",
        "commandExecutor",
        "defaultLimits",
        "fileBlobStore",
        "functionExecutor",
        "isHoldfastError",
        "memoryBlobStore",
        "policyTable",
        "serviceExecutor",
      ]
    `);
  });

  it("gives from holdfast/machines", () => {
    const names = exportsOf("machines/index.ts");
    expect(valuesOf(names)).toEqual(Object.keys(machines).sort());
    expect(names).toMatchInlineSnapshot(`
      [
        "AbandonReason (type)",
        "ActiveNode (type)",
        "CloseMode (type)",
        "InputContext (type)",
        "InputEvent (type)",
        "InputInput (type)",
        "InputMove (type)",
        "InputOutcome (type)",
        "NodeEntry (type)",
        "NodeKind (type)",
        "Registration (type)",
        "RouteOrigin (type)",
        "RunContext (type)",
        "RunEvent (type)",
        "RunFailure (type)",
        "RunInput (type)",
        "RunScope (type)",
        "SessionContext (type)",
        "SessionEvent (type)",
        "SessionInput (type)",
        "SupervisorContext (type)",
        "SupervisorEvent (type)",
        "TurnBoundary (type)",
        "TurnContext (type)",
        "TurnEvent (type)",
        "TurnInput (type)",
        "inputMachine",
        "runMachine",
        "sessionMachine",
        "supervisorMachine",
        "turnMachine",
      ]
    `);
  });

  it("gives from holdfast/store", () => {
    const names = exportsOf("src/store/index.ts");
    expect(valuesOf(names)).toEqual(Object.keys(store).sort());
    expect(names).toMatchInlineSnapshot(`
      [
        "BeginOptions (type)",
        "CallFilter (type)",
        "FailingStore (type)",
        "Fault (type)",
        "FaultRule (type)",
        "FileAudit (type)",
        "Finding (type)",
        "Gate (type)",
        "HoldRule (type)",
        "Injection (type)",
        "JsonObject (type)",
        "JsonValue (type)",
        "Key (type)",
        "Lease (type)",
        "LevelStore (type)",
        "LevelStoreOptions (type)",
        "ListRequest (type)",
        "MemoryStoreOptions (type)",
        "OperationId (type)",
        "OrderedJson (type)",
        "OrderedObject",
        "OwnerId (type)",
        "RECORD_VERSION",
        "RecordAudit (type)",
        "RecordCheck (type)",
        "RecordPage (type)",
        "Revision (type)",
        "StateStore (type)",
        "StateTransaction (type)",
        "StoreCall (type)",
        "StoreConflict",
        "StoreError",
        "StoreFenced",
        "StoreLocked",
        "StoreOperation (type)",
        "StoreSerialization",
        "StoreUnavailable",
        "StoredRecord (type)",
        "auditFiles",
        "auditRecords",
        "checkJson",
        "checkKey",
        "checkedStore",
        "compareEncoded",
        "decodeKey",
        "decodeRecord",
        "encodeKey",
        "encodeRecord",
        "equalsOrdered",
        "failingStore",
        "fromPlain",
        "fromStored",
        "levelStore",
        "memoryStore",
        "parseOrdered",
        "prefixRange",
        "printOrdered",
        "recordHead",
        "sequenceSegment",
        "showKey",
        "toPlain",
        "toStored",
      ]
    `);
  });
});
