/**
 * Holds the rooms of the design apart: reads every import of `src` and `machines` and names those
 * that go against the arrows. Run as `npm run arrows`; a line for each breach, exit code 1 when
 * there is one.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

/** Rooms from top to bottom. Imports go down; rooms on one floor do not import each other. */
const floors = [
  ["cli"],
  ["inspector"],
  ["testing"],
  ["supervisor"],
  ["sessions", "workflows"],
  ["kernel"],
  ["store", "blobs"],
];

const importNothing = ["src/errors.ts", "src/limits.ts"];
/** Below all rooms. */
const ground = [...importNothing, "src/durable-files.ts"];
const adapters = ["src/store/level/", "src/store/memory.ts", "src/store/postgres"];
const adapterUsers = [
  "src/store/index.ts",
  "src/index.ts",
  "src/supervisor/open.ts",
  "src/cli/",
  "src/testing/",
];
const xstateUsers = ["src/kernel/xstate.ts", "src/testing/", "machines/"];
const graphUser = "src/testing/graph.ts";

/**
 * @typedef {{ file: string, line: number, specifier: string, isTypeOnly: boolean }} Import
 * `file` is relative to the root, with forward slashes.
 */

/**
 * Every breach in the tree at `root`, as a line of text.
 * @param {string} root
 * @returns {string[]}
 */
export function arrowBreaches(root) {
  return sourceFiles(root).flatMap((file) => {
    const source = parse(root, file);
    const importBreaches = importsOf(source, file).flatMap((found) =>
      reasonsAgainst(found).map((reason) => `${file}:${found.line} ${reason}`),
    );
    return [...importBreaches, ...faceBreaches(source, file)];
  });
}

/** @param {string} root @returns {string[]} */
function sourceFiles(root) {
  return ["machines", "src"]
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .map((name) => posix.join(folder, name.replaceAll("\\", "/")))
        .filter((name) => /\.[cm]?tsx?$/.test(name)),
    )
    .sort();
}

/** @param {string} root @param {string} file */
function parse(root, file) {
  const text = readFileSync(join(root, file), "utf8");
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
}

/**
 * Imports, re-exports, dynamic imports and types written as `import("…")`. Under
 * `verbatimModuleSyntax` only `import type` and `export type` leave nothing at run time.
 * @param {ts.SourceFile} source @param {string} file @returns {Import[]}
 */
function importsOf(source, file) {
  /** @type {Import[]} */
  const found = [];
  /** @param {ts.Node | undefined} specifier @param {boolean} isTypeOnly */
  function add(specifier, isTypeOnly) {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    const { line } = source.getLineAndCharacterOfPosition(specifier.getStart(source));
    found.push({ file, line: line + 1, specifier: specifier.text, isTypeOnly });
  }
  /** @param {ts.Node} node */
  function visit(node) {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true);
    }
    ts.forEachChild(node, visit);
  }
  visit(source);
  return found;
}

/** @param {Import} found @returns {string[]} */
function reasonsAgainst(found) {
  if (importNothing.includes(found.file)) {
    return [`imports ${found.specifier}, but errors and limits import nothing`];
  }
  const reasons = found.specifier.startsWith(".")
    ? reasonsAgainstFile(found, fileOf(found))
    : reasonsAgainstPackage(found);
  return reasons.map((reason) => `imports ${found.specifier}, but ${reason}`);
}

/** @param {Import} found */
function fileOf({ file, specifier }) {
  return posix.join(posix.dirname(file), specifier).replace(/\.js$/, ".ts");
}

/** @param {Import} found @param {string} target @returns {string[]} */
function reasonsAgainstFile({ file }, target) {
  const from = roomOf(file);
  const to = roomOf(target);
  const reasons = [];
  if (to === undefined) reasons.push("that is in no room of the design");
  else if (from === "machines" && to !== "machines") {
    reasons.push("machines import only xstate and machines");
  } else if (!mayImport(from, to)) {
    reasons.push(`imports run downwards only, and ${to} is not below ${from ?? "this file"}`);
  }
  if (isUnder(target, adapters) && !isUnder(file, [...adapterUsers, ...adapters])) {
    reasons.push("adapters of the store are leaves, chosen where a store is opened");
  }
  return reasons;
}

/** @param {Import} found @returns {string[]} */
function reasonsAgainstPackage({ file, specifier, isTypeOnly }) {
  const isXstate = specifier === "xstate" || specifier.startsWith("xstate/");
  const reasons = [];
  if (file.startsWith("machines/") && !isXstate) {
    reasons.push("machines import only xstate and machines");
  }
  if (isXstate && !isTypeOnly && !isUnder(file, xstateUsers)) {
    reasons.push("at run time only src/kernel/xstate.ts, src/testing and machines touch it");
  }
  if (specifier.startsWith("@xstate/graph") && file !== graphUser) {
    reasons.push(`only ${graphUser} touches it`);
  }
  if (specifier === "effect") {
    reasons.push("the root of effect is slow to load: take the deep path, as effect/Effect");
  }
  if (specifier === "holdfast" || specifier.startsWith("holdfast/")) {
    reasons.push("inside, files are imported by their path, so that the rooms hold");
  }
  return reasons;
}

/**
 * The room of a file; `face` is above all rooms, `ground` below them.
 * @param {string} file @returns {string | undefined}
 */
function roomOf(file) {
  if (file.startsWith("machines/")) return "machines";
  if (file === "src/index.ts") return "face";
  if (ground.includes(file)) return "ground";
  const [, room] = /^src\/([^/]+)\//.exec(file) ?? [];
  return floors.flat().find((name) => name === room);
}

/** @param {string | undefined} from @param {string} to */
function mayImport(from, to) {
  if (from === to || to === "ground") return true;
  if (from === "face") return to !== "face";
  const above = floors.findIndex((floor) => floor.includes(from ?? ""));
  if (above === -1) return false;
  if (to === "machines") return above < floors.findIndex((floor) => floor.includes("kernel"));
  return above < floors.findIndex((floor) => floor.includes(to));
}

/** @param {string} file @param {readonly string[]} places */
function isUnder(file, places) {
  return places.some((place) => file.startsWith(place));
}

/**
 * The public face holds re-exports and nothing else.
 * @param {ts.SourceFile} source @param {string} file @returns {string[]}
 */
function faceBreaches(source, file) {
  if (file !== "src/index.ts") return [];
  return source.statements
    .filter((node) => !ts.isExportDeclaration(node) || node.moduleSpecifier === undefined)
    .map((node) => {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      return `${file}:${line + 1} holds code of its own, but the face only re-exports`;
    });
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
  const breaches = arrowBreaches(root);
  for (const line of breaches) process.stdout.write(`${line}\n`);
  const count = sourceFiles(root).length;
  process.stderr.write(`${count} files, ${breaches.length} breaches of the arrows\n`);
  process.exitCode = breaches.length > 0 || count === 0 ? 1 : 0;
}
