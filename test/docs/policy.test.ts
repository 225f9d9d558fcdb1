/** docs/policy.md against the policy table of the code, row by row. */
import { describe, expect, it } from "vitest";
import {
  type Activity,
  decidePolicy,
  POLICY_VERSION,
  type PolicyDecision,
  policyTable,
} from "../../src/sessions/policy.js";
import { readPage, tableRows } from "./page.js";

const page = readPage("policy.md");

const cells = ({ apply, wake, queue, consume, drain, route, transcript }: PolicyDecision) => [
  apply,
  wake,
  queue,
  consume,
  drain,
  route,
  transcript ? "yes" : "no",
];

describe("docs/policy.md", () => {
  it("has every row of the table, in its order, and no other", () => {
    const rows = Object.entries(policyTable).flatMap(([kind, row]) =>
      Object.entries(row).map(([activity, decision]) => [
        `\`${kind}\``,
        activity,
        ...cells(decision),
      ]),
    );
    expect(tableRows(page, "kind")).toEqual(rows);
  });

  it("names the version of the table", () => {
    expect(page).toContain(`**version ${POLICY_VERSION}**`);
  });

  it("has what a handling changes", () => {
    const rows = tableRows(page, "handling");
    expect(rows).toHaveLength(4);
    for (const [handling, activity, ...changed] of rows) {
      const { decision } = decidePolicy(
        { kind: "prompt", text: "x", handling: handling?.replaceAll("`", "") as "queue" | "steer" },
        activity as Activity,
        [],
      );
      const { apply, wake, queue, drain, route } = decision;
      expect(changed).toEqual([apply, wake, queue, drain, route]);
    }
  });
});
