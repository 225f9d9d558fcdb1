/**
 * Schemas that a session declares for what goes in and what comes out, in the form that schema
 * libraries share (https://standardschema.dev). They check; what they would change stays as it was
 * given, so that a stored payload is what its sender sent.
 */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { ValidationError, type ValidationIssue } from "../errors.js";
import { pointerStep } from "../store/json.js";

export interface SessionSchemas {
  /** For the payload of each input: its kind and what belongs to it, without the header. */
  readonly input?: StandardSchemaV1 | undefined;
  /** For the result of each turn; a turn without result has `null`. */
  readonly result?: StandardSchemaV1 | undefined;
}

/**
 * @throws ValidationError the value does not fit, or the schema could not tell; with a JSON pointer
 * for each fault and never the value
 */
export async function requireFit(
  schema: StandardSchemaV1 | undefined,
  value: unknown,
  subject: string,
): Promise<void> {
  if (schema === undefined) return;
  let issues: readonly ValidationIssue[];
  try {
    const outcome = await schema["~standard"].validate(value);
    issues = (outcome.issues ?? []).map((issue) => ({
      path: pointerOf(issue.path ?? []),
      found: "not what the session's schema takes",
      expected: oneLine(issue.message),
    }));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const found = `a value at which the session's schema failed (${oneLine(message)})`;
    issues = [{ path: "", found, expected: "a schema that answers" }];
  }
  if (issues.length > 0) throw new ValidationError(subject, issues);
}

export function isSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as Partial<StandardSchemaV1>)["~standard"];
  return typeof standard === "object" && typeof standard.validate === "function";
}

type Path = NonNullable<StandardSchemaV1.Issue["path"]>;

/** A path as a JSON pointer (RFC 6901). */
function pointerOf(path: Path): string {
  return path
    .map((segment) => String(typeof segment === "object" ? segment.key : segment))
    .map(pointerStep)
    .join("");
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 200).toWellFormed();
}
