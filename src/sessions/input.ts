/**
 * Inputs as callers give them and as they are stored: the six kinds, their common header, and the
 * check at the door. Nothing is read from or written to the store here.
 */
import { createHash } from "node:crypto";
import type { InputOutcome } from "../../machines/input.js";
import { isoInstant } from "../kernel/clock.js";
import type { JsonObject, JsonValue } from "../store/port.js";
import type { PayloadImages } from "./images.js";

export type InputOrigin =
  | { readonly type: "operator" }
  | {
      readonly type: "peer";
      readonly peerId: string;
      readonly displayIdentity?: string;
      readonly runtimeId?: string;
    }
  | { readonly type: "flow"; readonly flowId: string; readonly step: string }
  | { readonly type: "system" }
  | { readonly type: "external"; readonly source: string };

/** `durable` rows survive; `ephemeral` ones are forgotten by recovery; `derived` can be made again. */
export type Durability = "durable" | "ephemeral" | "derived";

export type Handling = "queue" | "steer";

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

/** An image with its bytes: as it is sent, and as a turn gets it. */
export interface InlineImage {
  readonly type: "image";
  readonly mediaType: string;
  /** Base64 with padding. */
  readonly data: string;
}

/** An image by the id of its blob: as it is stored, and as it may be sent again. */
export interface StoredImage {
  readonly type: "image";
  readonly mediaType: string;
  /** `sha256:` and 64 hex digits. */
  readonly blob: string;
}

export type Block = TextBlock | InlineImage | StoredImage;

/** What every input may carry. Everything has a default. */
export interface InputHeaderRequest {
  /** A UUID of version 7 is made where none is given. */
  readonly id?: string;
  /** ISO 8601; the time of admission where none is given. */
  readonly timestamp?: string;
  readonly origin?: InputOrigin;
  readonly durability?: Durability;
  readonly visibility?: { readonly transcript?: boolean; readonly operator?: boolean };
  /** The same key with the same payload is the same input, however often it is sent. */
  readonly idempotencyKey?: string;
  readonly supersessionKey?: string;
  readonly correlationId?: string;
}

export type PeerConvention =
  | { readonly type: "message" }
  | { readonly type: "request"; readonly requestId: string; readonly intent: string }
  | { readonly type: "responseProgress"; readonly requestId: string; readonly phase: string }
  | { readonly type: "responseTerminal"; readonly requestId: string; readonly status: string };

export interface PromptRequest extends InputHeaderRequest {
  readonly kind: "prompt";
  readonly text: string;
  readonly blocks?: readonly Block[];
  readonly metadata?: JsonObject;
  readonly handling?: Handling;
}
export interface PeerRequest extends InputHeaderRequest {
  readonly kind: "peer";
  readonly body: string;
  readonly convention?: PeerConvention;
  readonly payload?: JsonValue;
  readonly blocks?: readonly Block[];
  readonly handling?: Handling;
}
export interface FlowStepRequest extends InputHeaderRequest {
  readonly kind: "flowStep";
  readonly stepId: string;
  readonly instructions: string;
  readonly blocks?: readonly Block[];
  readonly metadata?: JsonObject;
  readonly handling?: Handling;
}
export interface ExternalEventRequest extends InputHeaderRequest {
  readonly kind: "externalEvent";
  readonly eventType: string;
  readonly payload: JsonValue;
  readonly blocks?: readonly Block[];
  readonly handling?: Handling;
}
export interface ContinuationRequest extends InputHeaderRequest {
  readonly kind: "continuation";
  readonly reason: string;
  readonly requestId?: string;
  readonly handling?: Handling;
}
export interface OperationRequest extends InputHeaderRequest {
  readonly kind: "operation";
  readonly operationId: string;
  readonly event: JsonValue;
}

export type InputRequest =
  | PromptRequest
  | PeerRequest
  | FlowStepRequest
  | ExternalEventRequest
  | ContinuationRequest
  | OperationRequest;

export type InputKind = InputRequest["kind"];

/** The header with its defaults in place. */
export interface InputHeader {
  readonly id: string;
  readonly timestamp: string;
  readonly origin: InputOrigin;
  readonly durability: Durability;
  readonly visibility: { readonly transcript: boolean; readonly operator: boolean };
  readonly idempotencyKey?: string;
  readonly supersessionKey?: string;
  readonly correlationId?: string;
}

/** The kind and what belongs to it, without the header. */
export type InputPayload = InputRequest extends infer R
  ? R extends InputRequest
    ? Omit<R, keyof InputHeaderRequest>
    : never
  : never;

export interface ParsedInput {
  readonly header: InputHeader;
  /** With blob ids in place of images. */
  readonly payload: InputPayload;
  readonly images: PayloadImages;
  /** Bytes of UTF-8 of the payload as JSON text. */
  readonly payloadBytes: number;
}

/** How an input stands, as handles report it. */
export interface InputView {
  readonly inputId: string;
  readonly sequence: number;
  readonly phase: string;
  readonly kind: InputKind;
  readonly payload: InputPayload;
  readonly header: InputHeader;
  readonly attempts: number;
  readonly recoveries: number;
  readonly outcome: InputOutcome | null;
  readonly lastTurnId: string | null;
  readonly lastBoundarySequence: number | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Fills the header's defaults. */
export function completeHeader(
  request: InputHeaderRequest,
  given: { readonly id: () => string; readonly nowMs: number },
): InputHeader {
  return {
    id: request.id ?? given.id(),
    timestamp: request.timestamp ?? isoInstant(given.nowMs),
    origin: request.origin ?? { type: "operator" },
    durability: request.durability ?? "durable",
    visibility: {
      transcript: request.visibility?.transcript ?? true,
      operator: request.visibility?.operator ?? true,
    },
    ...(request.idempotencyKey === undefined ? {} : { idempotencyKey: request.idempotencyKey }),
    ...(request.supersessionKey === undefined ? {} : { supersessionKey: request.supersessionKey }),
    ...(request.correlationId === undefined ? {} : { correlationId: request.correlationId }),
  };
}

/**
 * Identifies a payload whatever the order of its fields: SHA-256 over its JSON text with sorted
 * names, in hex. Two requests with one idempotency key must agree in it.
 */
export function payloadDigest(payload: InputPayload): string {
  return createHash("sha256")
    .update(canonicalJson(payload as unknown as JsonValue))
    .digest("hex");
}

function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const entries = Object.entries(value as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`).join(",")}}`;
}
