/**
 * Admission: decides on an input and makes it durable before anybody is told. The checks come in a
 * fixed order: session state, durability, handling, terminal fact, idempotency, room.
 */
import {
  CapacityError,
  ConflictError,
  CorruptionError,
  DestroyedError,
  IdempotencyConflictError,
  NotReadyError,
  show,
} from "../errors.js";
import type { Completion } from "./completion.js";
import type { Environment } from "./environment.js";
import { keepImages } from "./images.js";
import { type InputRequest, type ParsedInput, payloadDigest } from "./input.js";
import { LiveInput } from "./live-input.js";
import { parseInput } from "./parse-input.js";
import {
  type Activity,
  decidePolicy,
  type Policy,
  replacementScope,
  semanticsStamp,
} from "./policy.js";
import { decodeInput, type KeyRecord, keys } from "./records.js";
import type { SessionRuntime } from "./runtime.js";
import { requireFit } from "./schema.js";
import { storedCompletion } from "./stored-completion.js";

export type Admission =
  | {
      readonly outcome: "accepted";
      readonly inputId: string;
      readonly policy: Policy;
      /** Phase of the input right after its admission. */
      readonly state: string;
      readonly completion: Promise<Completion>;
    }
  | {
      readonly outcome: "deduplicated";
      /** The id under which this request came; it is not kept. */
      readonly inputId: string;
      readonly existingId: string;
      readonly state: string;
      readonly policy: Policy;
      /** The completion of the existing input. */
      readonly completion: Promise<Completion>;
    }
  | { readonly outcome: "rejected"; readonly inputId: string; readonly reason: string };

/** An input that may be admitted, as far as it alone can tell. */
export interface AdmissionRequest extends ParsedInput {
  /** The caller chose its id; without one a new id was made. */
  readonly hasOwnId: boolean;
}

/** @throws ValidationError with every fault of the request */
export function parseRequest(
  request: InputRequest,
  { clock, ids, limits }: Environment,
): AdmissionRequest {
  const nowMs = clock.nowMs();
  const parsed = parseInput(request, { id: () => ids.next(nowMs), nowMs, limits });
  return { ...parsed, hasOwnId: request.id !== undefined };
}

/**
 * Takes one input. When it returns `accepted`, the input is durable; when it throws, nothing of it
 * is there and it can be sent again.
 * @throws ValidationError | NotReadyError | DestroyedError | IdempotencyConflictError | CapacityError |
 * ConflictError | ClosedError | OperationError (the store failed; see its cause)
 */
export async function accept(
  runtime: SessionRuntime,
  { hasOwnId, ...parsed }: AdmissionRequest,
  signal?: AbortSignal,
): Promise<Admission> {
  const { limits } = runtime.environment;
  await requireFit(runtime.schemas.input, parsed.payload, "input");
  return runtime.operation("accept an input", async () => {
    signal?.throwIfAborted();
    requireAccepting(runtime);
    const reason = reasonToReject(parsed);
    if (reason !== undefined) {
      return { outcome: "rejected", inputId: parsed.header.id, reason };
    }
    const known = await findKnown(runtime, parsed, hasOwnId);
    if (known.admission !== undefined) return known.admission;
    const replaced = findReplaced(runtime, parsed);
    const others = runtime.state.inputs.size - (replaced === undefined ? 0 : 1);
    if (others >= limits.queueInputsMax) {
      throw new CapacityError(runtime.id, "queueInputsMax", limits.queueInputsMax);
    }
    await keepImages(runtime.environment.blobs, parsed.images);
    return admit(runtime, parsed, { expiredKey: known.expiredKey, replaced });
  });
}

function requireAccepting(runtime: SessionRuntime): void {
  const { actor } = runtime.state;
  if (actor.state === "destroyed") throw new DestroyedError(runtime.id, "accept an input");
  const isTaking =
    actor.state === "idle" || actor.state === "attached" || actor.state === "running";
  if (!isTaking || actor.context.registration === "draining") {
    throw new NotReadyError(runtime.id, actor.state, "accept an input");
  }
}

/** Why an input is refused for what it is. Nothing is written for it. */
function reasonToReject({ header, payload }: ParsedInput): string | undefined {
  if (header.durability === "derived") {
    const { type } = header.origin;
    if (type === "operator" || type === "peer" || type === "external") {
      return `derived durability is not taken from the origin ${type}`;
    }
    if (payload.kind === "prompt" || payload.kind === "flowStep") {
      return `a ${payload.kind} cannot be derived`;
    }
    if (payload.kind === "peer" && payload.convention?.type !== "responseProgress") {
      return `a peer ${payload.convention?.type ?? "message"} cannot be derived`;
    }
  }
  if (payload.kind !== "peer") return undefined;
  if (payload.convention?.type === "responseProgress" && payload.handling !== undefined) {
    return "a peer's progress report takes no handling mode";
  }
  if (payload.convention?.type === "responseTerminal") return reasonOfTerminal(header.origin);
  return undefined;
}

function reasonOfTerminal(origin: ParsedInput["header"]["origin"]): string | undefined {
  if (origin.type !== "peer") return "a terminal response comes from a peer";
  if (origin.displayIdentity === undefined) {
    return "a terminal response needs the peer's display identity";
  }
  return undefined;
}

/** Looks for the same input by its idempotency key, and by its id where the caller chose one. */
async function findKnown(
  runtime: SessionRuntime,
  parsed: ParsedInput,
  hasOwnId: boolean,
): Promise<{ readonly admission?: Admission; readonly expiredKey?: KeyRecord }> {
  const { idempotencyKey, id } = parsed.header;
  let expiredKey: KeyRecord | undefined;
  if (idempotencyKey !== undefined) {
    const record = await runtime.load(keys.idempotency(runtime.id, idempotencyKey));
    const row = record?.value as unknown as KeyRecord | undefined;
    if (row !== undefined && !hasExpired(runtime, row)) {
      if (row.digest !== payloadDigest(parsed.payload)) {
        throw new IdempotencyConflictError(runtime.id, idempotencyKey, row.inputId);
      }
      return { admission: await deduplicated(runtime, id, row.sequence) };
    }
    expiredKey = row;
  }
  if (hasOwnId) {
    const record = await runtime.load(keys.inputId(runtime.id, id));
    if (record !== undefined) {
      const { sequence } = record.value as unknown as { readonly sequence: number };
      const existing = await runtime.load(keys.input(runtime.id, sequence));
      const payload = existing === undefined ? undefined : decodeInput(existing).payload;
      if (payload === undefined || payloadDigest(payload) !== payloadDigest(parsed.payload)) {
        throw new ConflictError("input", id, "this id was already taken with another payload");
      }
      return { admission: await deduplicated(runtime, id, sequence) };
    }
  }
  return expiredKey === undefined ? {} : { expiredKey };
}

function hasExpired(runtime: SessionRuntime, row: KeyRecord): boolean {
  const { clock, limits } = runtime.environment;
  return row.endedAtMs !== undefined && row.endedAtMs + limits.endedKeyAgeMaxMs < clock.nowMs();
}

async function deduplicated(
  runtime: SessionRuntime,
  inputId: string,
  sequence: number,
): Promise<Admission> {
  const record = await runtime.load(keys.input(runtime.id, sequence));
  if (record === undefined) {
    throw new CorruptionError(
      `Session ${show(runtime.id)}`,
      `an index names input ${sequence}, which is not there`,
    );
  }
  const existing = decodeInput(record);
  const live = runtime.state.inputs.get(existing.id);
  // Read here, not behind the promise: a completion never rejects.
  const completion =
    live?.waiter.promise ??
    runtime.state.turn?.deferred.get(existing.id)?.promise ??
    Promise.resolve(await storedCompletion((key) => runtime.load(key), runtime.id, existing));
  return {
    outcome: "deduplicated",
    inputId,
    existingId: existing.id,
    state: live?.actor.state ?? String(existing.snapshot.value),
    policy: existing.policy,
    completion,
  };
}

/** The waiting input whose place a new one takes: the first of its scope, on the queue lane first. */
function findReplaced({ state }: SessionRuntime, parsed: ParsedInput): LiveInput | undefined {
  const scope = replacementScope(parsed.payload, parsed.header.supersessionKey);
  return scope === undefined ? undefined : state.lanes.find((input) => input.scope === scope);
}

async function admit(
  runtime: SessionRuntime,
  parsed: ParsedInput,
  {
    expiredKey,
    replaced,
  }: { readonly expiredKey: KeyRecord | undefined; readonly replaced: LiveInput | undefined },
): Promise<Admission> {
  const { environment, state } = runtime;
  const surroundings = runtime.surroundings();
  const activity: Activity = state.actor.state === "running" ? "running" : "resting";
  const policy = decidePolicy(parsed.payload, activity, surroundings.silentIntents);
  const isConsumedAtOnce =
    policy.decision.apply === "ignore" && policy.decision.consume === "onAccept";
  if (isConsumedAtOnce || replaced !== undefined) await runtime.refreshEndedKeys();

  const plan = runtime.plan();
  plan.moveSession({ type: "accept" });
  const input = LiveInput.admit(
    {
      sequence: plan.takeSequence(),
      position: plan.takePosition(),
      header: parsed.header,
      payload: parsed.payload,
      policy,
      stamp: semanticsStamp(policy, parsed.payload),
      createdAt: plan.at,
      updatedAt: plan.at,
    },
    { ...surroundings, attemptsMax: environment.limits.attemptsPerInputMax },
  );
  plan.admit(input);
  if (expiredKey !== undefined) plan.forgetEndedKey(expiredKey);
  if (replaced !== undefined) {
    plan.moveInput(
      replaced,
      policy.decision.queue === "coalesce"
        ? { type: "coalesce", at: plan.at, into: input.id }
        : { type: "supersede", at: plan.at, by: input.id },
    );
  }
  plan.moveInput(input, { type: isConsumedAtOnce ? "consumeOnAccept" : "queue", at: plan.at });
  await runtime.commit(plan);
  return {
    outcome: "accepted",
    inputId: input.id,
    policy,
    state: input.actor.state,
    completion: input.waiter.promise,
  };
}
