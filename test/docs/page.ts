/** Pages of `docs/` as tests read them: their text, their tables, their blocks of code. */
import { readFileSync } from "node:fs";

/** The text of a page, by its name within `docs/`. */
export function readPage(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");
}

/**
 * The rows of every table whose first column is headed so, each as its cells. A bar within a cell is
 * written as `\|`.
 */
export function tableRows(page: string, firstColumn: string): readonly (readonly string[])[] {
  const rows: (readonly string[])[] = [];
  let isInTable = false;
  for (const line of page.split("\n")) {
    if (!line.startsWith("|")) isInTable = false;
    else if (cellsOf(line)[0] === firstColumn) isInTable = true;
    else if (isInTable && !/^\|[\s|:-]+\|$/.test(line)) rows.push(cellsOf(line));
  }
  return rows;
}

/** The part of a page under a heading, up to the next heading of the same or a higher level. */
export function section(page: string, heading: string): string {
  const lines = page.split("\n");
  const start = lines.findIndex(
    (line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === heading,
  );
  if (start < 0) throw new Error(`the page has no heading "${heading}"`);
  const level = /^#+/.exec(lines[start] ?? "")?.[0].length ?? 0;
  const length = lines
    .slice(start + 1)
    .findIndex((line) => /^#+ /.test(line) && (/^#+/.exec(line)?.[0].length ?? 0) <= level);
  return lines.slice(start, length < 0 ? undefined : start + 1 + length).join("\n");
}

/** The blocks of code of one language, in their order. */
export function codeBlocks(page: string, language: string): readonly string[] {
  return [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, found]) => found === language)
    .map(([, , text = ""]) => text);
}

function cellsOf(line: string): readonly string[] {
  return line
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
}
