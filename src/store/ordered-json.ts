/**
 * JSON whose objects keep the order of their members exactly, integer-like names too, which plain
 * JavaScript objects do not. For what users store: it is read from text, compared and printed with
 * its order, and stored as lists of entries. Parsing is strict: RFC 8259, no duplicate names.
 */
import { type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { assert, ValidationError } from "../errors.js";
import { JSON_DEPTH_MAX } from "../limits.js";
import { pointerStep } from "./json.js";
import type { JsonValue } from "./port.js";

export type OrderedJson = null | boolean | number | string | readonly OrderedJson[] | OrderedObject;

/** An immutable object that keeps the order of its members. */
export class OrderedObject {
  readonly #members: ReadonlyMap<string, OrderedJson>;

  /** Later entries of a name replace its value and keep its place, as in a Map. */
  constructor(entries: Iterable<readonly [string, OrderedJson]> = []) {
    this.#members = new Map(entries);
  }

  get size(): number {
    return this.#members.size;
  }

  get(name: string): OrderedJson | undefined {
    return this.#members.get(name);
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  names(): IterableIterator<string> {
    return this.#members.keys();
  }

  entries(): IterableIterator<[string, OrderedJson]> {
    return this.#members.entries();
  }

  [Symbol.iterator](): IterableIterator<[string, OrderedJson]> {
    return this.entries();
  }

  /** A copy with the member set: in its place where it exists, else at the end. */
  with(name: string, value: OrderedJson): OrderedObject {
    return new OrderedObject(new Map(this.#members).set(name, value));
  }

  /** A copy without the member. */
  without(name: string): OrderedObject {
    return new OrderedObject([...this.#members].filter(([other]) => other !== name));
  }

  /** The nearest plain value: integer-like names move to the front. */
  toJSON(): JsonValue {
    return toPlain(this);
  }
}

/**
 * Reads JSON text, keeping the order of members.
 * @throws ValidationError with the offset of the fault, or the pointer of a duplicate name
 */
export function parseOrdered(text: string, subject = "JSON text"): OrderedJson {
  if (!text.isWellFormed()) {
    refuse(subject, "", "text with a lone surrogate", "well-formed Unicode");
  }
  refuseDepth(text, subject);
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, {
    disallowComments: true,
    allowTrailingComma: false,
    allowEmptyContent: false,
  });
  const [first] = errors;
  if (first !== undefined) {
    refuse(subject, "", `${printParseErrorCode(first.error)} at offset ${first.offset}`, "JSON");
  }
  try {
    // The tree parser forgives a few things that RFC 8259 does not; the platform's forgives none.
    JSON.parse(text);
  } catch (error) {
    // Its message quotes the text, so only the position is taken from it.
    const offset = /position (\d+)/.exec(String(error))?.[1] ?? text.length;
    refuse(subject, "", `a fault at offset ${offset}`, "JSON");
  }
  assert(tree !== undefined, "JSON without a fault has a tree");
  return fromNode(tree, "", subject);
}

/** Compact JSON text in the order of the members. */
export function printOrdered(value: OrderedJson): string {
  if (isList(value)) return `[${value.map(printOrdered).join(",")}]`;
  if (!(value instanceof OrderedObject)) return JSON.stringify(value);
  const members = [...value].map(([name, member]) => {
    return `${JSON.stringify(name)}:${printOrdered(member)}`;
  });
  return `{${members.join(",")}}`;
}

/** Equality that counts the order of members. */
export function equalsOrdered(a: OrderedJson, b: OrderedJson): boolean {
  if (a === b) return true;
  if (isList(a)) {
    return isList(b) && a.length === b.length && a.every((item, i) => same(item, b[i]));
  }
  if (!(a instanceof OrderedObject) || !(b instanceof OrderedObject) || a.size !== b.size) {
    return false;
  }
  const others = b.entries();
  return [...a].every(([name, value]) => {
    const other = others.next().value;
    return other !== undefined && other[0] === name && equalsOrdered(value, other[1]);
  });
}

/** The value for storing: an object becomes `{ "entries": [[name, value], …] }`. */
export function toStored(value: OrderedJson): JsonValue {
  if (isList(value)) return value.map(toStored);
  if (!(value instanceof OrderedObject)) return value;
  return { entries: [...value].map(([name, member]) => [name, toStored(member)]) };
}

/**
 * The value that `toStored` gave.
 * @throws ValidationError with the JSON pointer of what does not have that form
 */
export function fromStored(stored: JsonValue, path = ""): OrderedJson {
  if (isList(stored)) return stored.map((item, i) => fromStored(item, `${path}/${i}`));
  if (typeof stored !== "object" || stored === null) return stored;
  const entries = stored.entries;
  if (!isList(entries) || Object.keys(stored).length !== 1) {
    refuse("stored state", path, "an object of another form", "a list of entries");
  }
  const members = new Map<string, OrderedJson>();
  entries.forEach((entry, i) => {
    const at = `${path}/entries/${i}`;
    if (!isList(entry) || entry.length !== 2) refuse("stored state", at, "no pair", "a pair");
    const [name, member] = entry;
    if (typeof name !== "string" || member === undefined || members.has(name)) {
      refuse("stored state", at, "a name that is no string or not unique", "a unique name");
    }
    members.set(name, fromStored(member, `${at}/1`));
  });
  return new OrderedObject(members);
}

/** A plain value in the order in which JavaScript enumerates it. */
export function fromPlain(value: JsonValue): OrderedJson {
  if (isList(value)) return value.map(fromPlain);
  if (typeof value !== "object" || value === null) return value;
  return new OrderedObject(Object.entries(value).map(([name, m]) => [name, fromPlain(m)]));
}

/** A plain value; JavaScript moves integer-like names to the front. */
export function toPlain(value: OrderedJson): JsonValue {
  if (isList(value)) return value.map(toPlain);
  if (!(value instanceof OrderedObject)) return value;
  return Object.fromEntries([...value].map(([name, member]) => [name, toPlain(member)]));
}

function fromNode(node: Node, path: string, subject: string): OrderedJson {
  if (node.type === "array") {
    return (node.children ?? []).map((child, i) => fromNode(child, `${path}/${i}`, subject));
  }
  if (node.type === "object") return objectFromNode(node, path, subject);
  const value: unknown = node.value;
  if (typeof value === "number" && !Number.isFinite(value)) {
    refuse(subject, path, "a number beyond the range of doubles", "a finite number");
  }
  if (typeof value === "string" && !value.isWellFormed()) {
    refuse(subject, path, "a string with a lone surrogate", "well-formed Unicode");
  }
  return value as null | boolean | number | string;
}

function objectFromNode(node: Node, path: string, subject: string): OrderedObject {
  const members = new Map<string, OrderedJson>();
  for (const property of node.children ?? []) {
    const [nameNode, valueNode] = property.children ?? [];
    assert(nameNode !== undefined && valueNode !== undefined, "a property has a name and a value");
    const name: string = nameNode.value;
    const at = path + pointerStep(name.toWellFormed());
    if (!name.isWellFormed()) {
      refuse(subject, at, "a property name with a lone surrogate", "well-formed Unicode");
    }
    if (members.has(name)) {
      refuse(subject, at, `a duplicate at offset ${nameNode.offset}`, "each name once");
    }
    members.set(name, fromNode(valueNode, at, subject));
  }
  return new OrderedObject(members);
}

/** The tree parser recurses, so depth is bounded before it runs. */
function refuseDepth(text: string, subject: string): void {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text[at];
    if (isInString) {
      if (unit === "\\") at += 1;
      else if (unit === '"') isInString = false;
    } else if (unit === '"') isInString = true;
    else if (unit === "]" || unit === "}") depth -= 1;
    else if (unit === "[" || unit === "{") {
      depth += 1;
      if (depth > JSON_DEPTH_MAX) {
        const found = `nested deeper than ${JSON_DEPTH_MAX} at offset ${at}`;
        refuse(subject, "", found, `at most ${JSON_DEPTH_MAX} levels`);
      }
    }
  }
}

function same(a: OrderedJson, b: OrderedJson | undefined): boolean {
  return b !== undefined && equalsOrdered(a, b);
}

function isList<T>(value: T): value is T & readonly Extract<T, readonly unknown[]>[number][] {
  return Array.isArray(value);
}

function refuse(subject: string, path: string, found: string, expected: string): never {
  throw new ValidationError(subject, [{ path, found, expected }]);
}
