/**
 * Text for a terminal or a log: one line, nothing in it that steers a terminal or reorders what is
 * read. Everything that comes from outside passes here before a person sees it.
 */
import { show } from "../errors.js";

// C0 and C1 controls, line and paragraph separators, and the marks that change the direction of text.
const STEERING = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** The text on one line: line ends as spaces, other controls as escapes. */
export function oneLine(text: string, charactersMax = Number.POSITIVE_INFINITY): string {
  const line = escapeControls(
    text
      .toWellFormed()
      .trim()
      .replace(/\s*[\r\n]+\s*/g, " "),
  );
  if (line.length <= charactersMax) return line;
  return `${line.slice(0, charactersMax - 1).toWellFormed()}…`;
}

/** The text with what steers a terminal written as `\\uXXXX`, as JSON has it. */
export function escapeControls(text: string): string {
  return text.replace(STEERING, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** An id as it is, where that is harmless; else quoted and escaped. */
export function plainId(id: string): string {
  return /^[\w.@+:/-]{1,80}$/.test(id) ? id : oneLine(show(id));
}

/** An id or a path as a word for a shell. */
export function shellWord(text: string): string {
  return /^[\w.@+:/-]+$/.test(text) ? text : `'${oneLine(text).replaceAll("'", "'\\''")}'`;
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
