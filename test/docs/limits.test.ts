/** docs/limits.md against the limits of the code. */
import { describe, expect, it } from "vitest";
import { LINE_BYTES_MAX } from "../../src/cli/input-lines.js";
import * as limits from "../../src/limits.js";
import { BATCH_MAX } from "../../src/sessions/lanes.js";
import { BATCH_CHARACTERS_MAX, BATCH_ROWS_MAX } from "../../src/store/commit-queue.js";
import { EPOCHS_MAX } from "../../src/store/epochs.js";
import { KEY_SEGMENTS_MAX } from "../../src/store/keys.js";
import { RECENT_KEYS_MAX } from "../../src/store/recent-writes.js";
import { FINDINGS_MAX } from "../../src/store/verify.js";
import { readPage, section, tableRows } from "./page.js";

/** Name → figure, in the order of the table under a heading. */
function figures(heading: string): Readonly<Record<string, number>> {
  const rows = tableRows(section(readPage("limits.md"), heading), "name");
  return Object.fromEntries(
    rows.map(([name = "", figure = ""]) => [
      name.replaceAll("`", ""),
      Number(figure.replaceAll(",", "")),
    ]),
  );
}

describe("docs/limits.md", () => {
  it("has the limits of a supervisor with their defaults, in their order", () => {
    const found = figures("Limits of a supervisor");
    expect(Object.entries(found)).toEqual(Object.entries(limits.defaultLimits));
  });

  it("has every other limit of src/limits.ts", () => {
    const fixed = Object.entries(limits).filter(([, value]) => typeof value === "number");
    expect(fixed.length).toBeGreaterThan(0);
    expect(figures("Limits that are fixed")).toEqual(Object.fromEntries(fixed));
  });

  it("has the limits of single parts as they are there", () => {
    expect(figures("Limits of single parts")).toEqual({
      KEY_SEGMENTS_MAX,
      BATCH_MAX,
      BATCH_ROWS_MAX,
      BATCH_CHARACTERS_MAX,
      RECENT_KEYS_MAX,
      EPOCHS_MAX,
      FINDINGS_MAX,
      LINE_BYTES_MAX,
    });
  });

  it("gives a unit and says what happens, for each", () => {
    const rows = tableRows(readPage("limits.md"), "name");
    for (const row of rows) {
      expect(row, row[0]).toHaveLength(5);
      expect(
        row.every((cell) => cell !== ""),
        row[0],
      ).toBe(true);
    }
  });
});
