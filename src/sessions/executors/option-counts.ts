/** Whole numbers among the options of an executor, each with a default and a range. */
import { describeNumber, ValidationError, type ValidationIssue } from "../../errors.js";

/** The longest wait of a Node timer. */
export const TIMER_MAX_MS = 2_147_483_647;

interface Range {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

/**
 * The options that `ranges` names, with their defaults where they are not given.
 * @throws ValidationError naming every one that is not a whole number in its range
 */
export function optionCounts<Name extends string>(
  subject: string,
  options: object,
  ranges: Readonly<Record<Name, Range>>,
): Record<Name, number> {
  const issues: ValidationIssue[] = [];
  const counts = {} as Record<Name, number>;
  for (const name of Object.keys(ranges) as Name[]) {
    const { fallback, min, max } = ranges[name];
    const value: unknown = Reflect.get(options, name) ?? fallback;
    counts[name] = value as number;
    if (Number.isInteger(value) && counts[name] >= min && counts[name] <= max) continue;
    const expected = `a whole number from ${min} to ${max}`;
    issues.push({ path: `/${name}`, found: describeNumber(value), expected });
  }
  if (issues.length > 0) throw new ValidationError(subject, issues);
  return counts;
}
