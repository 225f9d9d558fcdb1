/** Every id of the specification of sessions has a test that carries it in its title. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** `S-000-01` … `S-000-21` and so on. */
const ids = (prefix: string, last: number): readonly string[] =>
  Array.from({ length: last }, (_, index) => `${prefix}${String(index + 1).padStart(2, "0")}`);

/** All test files without their comments, so that an id counts only within code. */
function titles(): string {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".test.ts"),
  );
  const texts = files.map((name) => readFileSync(join(root, name), "utf8"));
  return texts.join("\n").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

const text = titles();

it.each([...ids("S-000-", 21), ...ids("S-001-", 8), ...ids("F-", 21)])("%s", (id) => {
  expect(text).toContain(id);
});
