/** The store room's public face (`holdfast/store`). */
export {
  StoreConflict,
  StoreError,
  StoreFenced,
  StoreLocked,
  StoreSerialization,
  StoreUnavailable,
} from "../errors.js";
export { checkedStore } from "./checked.js";
export { failingStore } from "./failing.js";
export type {
  CallFilter,
  FailingStore,
  Fault,
  FaultRule,
  Gate,
  HoldRule,
  Injection,
  StoreCall,
  StoreOperation,
} from "./faults.js";
export { checkJson } from "./json.js";
export {
  checkKey,
  compareEncoded,
  decodeKey,
  encodeKey,
  prefixRange,
  sequenceSegment,
  showKey,
} from "./keys.js";
export { auditFiles, type FileAudit } from "./level/audit-files.js";
export { type LevelStore, type LevelStoreOptions, levelStore } from "./level/level-store.js";
export { type MemoryStoreOptions, memoryStore } from "./memory.js";
export {
  equalsOrdered,
  fromPlain,
  fromStored,
  type OrderedJson,
  OrderedObject,
  parseOrdered,
  printOrdered,
  toPlain,
  toStored,
} from "./ordered-json.js";
export type {
  BeginOptions,
  JsonObject,
  JsonValue,
  Key,
  Lease,
  ListRequest,
  OperationId,
  OwnerId,
  RecordPage,
  Revision,
  StateStore,
  StateTransaction,
  StoredRecord,
} from "./port.js";
export { decodeRecord, encodeRecord, RECORD_VERSION, recordHead } from "./record.js";
export { auditRecords, type Finding, type RecordAudit, type RecordCheck } from "./verify.js";
