/**
 * The check at the door: unknown → a parsed input, or a ValidationError that lists every fault with
 * its JSON pointer. A table of field rules per kind; unknown fields are faults too, since a misspelt
 * `idempotencyKey` must not be lost in silence.
 */
import { isBase64, isBlobId, isMediaType } from "../blobs/blob-store.js";
import { describeKind, ValidationError, type ValidationIssue } from "../errors.js";
import { ID_BYTES_MAX, type Limits } from "../limits.js";
import { checkJson, pointerStep } from "../store/json.js";
import type { JsonValue } from "../store/port.js";
import { externalise, NO_IMAGES, type PayloadImages } from "./images.js";
import {
  type Block,
  completeHeader,
  type InputHeaderRequest,
  type InputKind,
  type InputPayload,
  type ParsedInput,
} from "./input.js";

/** Gives the fault of a value, or nothing. `required` is the caller's matter. */
type Rule = (value: unknown, path: string, issues: ValidationIssue[]) => void;

interface Field {
  readonly rule: Rule;
  readonly isRequired: boolean;
}

const must = (rule: Rule): Field => ({ rule, isRequired: true });
const may = (rule: Rule): Field => ({ rule, isRequired: false });

function refuse(issues: ValidationIssue[], path: string, found: string, expected: string): void {
  issues.push({ path, found, expected });
}

const text: Rule = (value, path, issues) => {
  if (typeof value !== "string") refuse(issues, path, describeKind(value), "a string");
  else if (!value.isWellFormed()) {
    refuse(issues, path, "a string with a lone surrogate", "well-formed Unicode");
  }
};

/** Ids and keys: 1 to 512 bytes of well-formed text. */
const id: Rule = (value, path, issues) => {
  const expected = `a string of 1 to ${ID_BYTES_MAX} bytes`;
  if (typeof value !== "string" || value === "")
    refuse(issues, path, describeKind(value), expected);
  else if (!value.isWellFormed()) {
    refuse(issues, path, "a string with a lone surrogate", "well-formed Unicode");
  } else if (value.length > ID_BYTES_MAX / 4 && Buffer.byteLength(value) > ID_BYTES_MAX) {
    refuse(issues, path, `${Buffer.byteLength(value)} bytes long`, expected);
  }
};

const flag: Rule = (value, path, issues) => {
  if (typeof value !== "boolean") refuse(issues, path, describeKind(value), "true or false");
};

const instant: Rule = (value, path, issues) => {
  if (typeof value !== "string" || !ISO_INSTANT.test(value) || Number.isNaN(Date.parse(value))) {
    refuse(
      issues,
      path,
      describeKind(value),
      "an instant in ISO 8601 such as 2026-01-31T12:00:00Z",
    );
  }
};
const ISO_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

const json: Rule = (value, path, issues) => {
  try {
    checkJson(value);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    for (const issue of error.issues) issues.push({ ...issue, path: path + issue.path });
  }
};

const jsonObject: Rule = (value, path, issues) => {
  if (!isObject(value)) refuse(issues, path, describeKind(value), "an object");
  else json(value, path, issues);
};

function oneOf(...names: readonly string[]): Rule {
  return (value, path, issues) => {
    if (typeof value !== "string" || !names.includes(value)) {
      refuse(issues, path, describeKind(value), `one of ${names.join(", ")}`);
    }
  };
}

function object(fields: Readonly<Record<string, Field>>): Rule {
  return (value, path, issues) => {
    if (!isObject(value)) refuse(issues, path, describeKind(value), "an object");
    else checkFields(value, fields, path, issues);
  };
}

/** An object whose `type` selects the fields that go with it. */
function variants(types: Readonly<Record<string, Readonly<Record<string, Field>>>>): Rule {
  const isType = oneOf(...Object.keys(types));
  return (value, path, issues) => {
    if (!isObject(value)) return refuse(issues, path, describeKind(value), "an object with a type");
    const type = value.type;
    if (typeof type !== "string" || !Object.hasOwn(types, type)) {
      return isType(type, `${path}/type`, issues);
    }
    checkFields(value, { type: must(text), ...types[type] }, path, issues);
  };
}

const mediaType: Rule = (value, path, issues) => {
  if (typeof value === "string" && isMediaType(value)) return;
  refuse(issues, path, describeKind(value), "a media type in lower case, such as image/png");
};

const base64: Rule = (value, path, issues) => {
  if (typeof value === "string" && value !== "" && isBase64(value)) return;
  refuse(issues, path, describeKind(value), "base64 with padding, at least one byte");
};

const blobId: Rule = (value, path, issues) => {
  if (!isBlobId(value)) refuse(issues, path, describeKind(value), "sha256: and 64 hex digits");
};

const anyBlock = variants({
  text: { text: must(text) },
  image: { mediaType: must(mediaType), data: may(base64), blob: may(blobId) },
});

const block: Rule = (value, path, issues) => {
  anyBlock(value, path, issues);
  if (!isObject(value) || value.type !== "image") return;
  if ((value.data === undefined) === (value.blob === undefined)) {
    const found = value.data === undefined ? "an image without content" : "an image with both";
    refuse(issues, path, found, "either data or blob");
  }
};

const blocks: Rule = (value, path, issues) => {
  if (!Array.isArray(value)) return refuse(issues, path, describeKind(value), "an array of blocks");
  for (const [index, item] of value.entries()) block(item, `${path}/${index}`, issues);
};

const header: Readonly<Record<string, Field>> = {
  id: may(id),
  timestamp: may(instant),
  origin: may(
    variants({
      operator: {},
      peer: { peerId: must(id), displayIdentity: may(id), runtimeId: may(id) },
      flow: { flowId: must(id), step: must(id) },
      system: {},
      external: { source: must(id) },
    }),
  ),
  durability: may(oneOf("durable", "ephemeral", "derived")),
  visibility: may(object({ transcript: may(flag), operator: may(flag) })),
  idempotencyKey: may(id),
  supersessionKey: may(id),
  correlationId: may(id),
};

const handling = may(oneOf("queue", "steer"));

const kinds: Readonly<Record<InputKind, Readonly<Record<string, Field>>>> = {
  prompt: { text: must(text), blocks: may(blocks), metadata: may(jsonObject), handling },
  peer: {
    body: must(text),
    convention: may(
      variants({
        message: {},
        request: { requestId: must(id), intent: must(id) },
        responseProgress: { requestId: must(id), phase: must(id) },
        responseTerminal: { requestId: must(id), status: must(id) },
      }),
    ),
    payload: may(json),
    blocks: may(blocks),
    handling,
  },
  flowStep: {
    stepId: must(id),
    instructions: must(text),
    blocks: may(blocks),
    metadata: may(jsonObject),
    handling,
  },
  externalEvent: { eventType: must(id), payload: must(json), blocks: may(blocks), handling },
  continuation: { reason: must(text), requestId: may(id), handling },
  operation: { operationId: must(id), event: must(json) },
};

const isKind = oneOf(...Object.keys(kinds));

/** Per kind all fields at once, made here since this is on the path of every admission. */
const fieldsOfKind = new Map(
  Object.entries(kinds).map(([kind, fields]) => [kind, { kind: must(text), ...header, ...fields }]),
);

/**
 * Checks an input and fills its defaults. The result shares no structure that the caller could
 * change later: the payload is a copy.
 * @throws ValidationError with every fault found
 */
export function parseInput(
  value: unknown,
  given: { readonly id: () => string; readonly nowMs: number; readonly limits: Limits },
): ParsedInput {
  const issues: ValidationIssue[] = [];
  if (!isObject(value)) {
    throw new ValidationError("input", [
      { path: "", found: describeKind(value), expected: "an object with a kind" },
    ]);
  }
  const fields = fieldsOfKind.get(value.kind as string);
  if (fields === undefined) isKind(value.kind, "/kind", issues);
  else checkFields(value, fields, "", issues);
  if (issues.length > 0) throw new ValidationError("input", issues);

  const { payload, images } = withoutImages(
    Object.fromEntries(
      Object.entries(value).filter(([name, item]) => item !== undefined && !(name in header)),
    ),
    given.limits,
  );
  const payloadText = JSON.stringify(payload);
  const payloadBytes = Buffer.byteLength(payloadText);
  if (payloadBytes > given.limits.payloadBytesMax) {
    throw new ValidationError("input", [
      {
        path: "",
        found: `${payloadBytes} bytes of payload`,
        expected: `at most ${given.limits.payloadBytesMax} (limits.payloadBytesMax)`,
      },
    ]);
  }
  return {
    header: completeHeader(value as InputHeaderRequest, given),
    payload: JSON.parse(payloadText) as JsonValue as InputPayload,
    images,
    payloadBytes,
  };
}

/** Images leave the payload before it is measured, each with a limit of its own. */
function withoutImages(
  given: Readonly<Record<string, unknown>>,
  { blobBytesMax }: Limits,
): { readonly payload: object; readonly images: PayloadImages } {
  if (given.blocks === undefined) return { payload: given, images: NO_IMAGES };
  const { blocks: stored, images } = externalise(given.blocks as readonly Block[]);
  for (const { data } of images.inline.values()) {
    const bytes = Buffer.byteLength(data, "base64");
    if (bytes <= blobBytesMax) continue;
    throw new ValidationError("input", [
      {
        path: "/blocks",
        found: `an image of ${bytes} bytes`,
        expected: `at most ${blobBytesMax} (limits.blobBytesMax)`,
      },
    ]);
  }
  return { payload: { ...given, blocks: stored }, images };
}

/** Checks an id given by a caller: of a session, an input, a turn. */
export function requireId(value: unknown, subject: string): string {
  const issues: ValidationIssue[] = [];
  id(value, "", issues);
  if (issues.length > 0) throw new ValidationError(subject, issues);
  return value as string;
}

/** Checks a text given by a caller: any string that is well formed. */
export function requireText(value: unknown, subject: string): void {
  const issues: ValidationIssue[] = [];
  text(value, "", issues);
  if (issues.length > 0) throw new ValidationError(subject, issues);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function checkFields(
  value: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, Field>>,
  path: string,
  issues: ValidationIssue[],
): void {
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(fields, name) && value[name] !== undefined) {
      refuse(issues, `${path}${pointerStep(name)}`, "unknown", Object.keys(fields).join(", "));
    }
  }
  for (const [name, field] of Object.entries(fields)) {
    const item = value[name];
    if (item !== undefined) field.rule(item, `${path}/${name}`, issues);
    else if (field.isRequired) refuse(issues, `${path}/${name}`, "missing", "a value");
  }
}
