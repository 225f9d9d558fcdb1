import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, it } from "vitest";
import { functionExecutor, ValidationError } from "../../src/index.js";
import { acceptPrompt, World } from "../world.js";

/** A schema by hand: the libraries that implement the interface answer in the same form. */
function schema(validate: (value: unknown) => readonly StandardSchemaV1.Issue[]): StandardSchemaV1 {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: async (value) => {
        const issues = validate(value);
        return issues.length > 0 ? { issues } : { value };
      },
    },
  };
}

const shortPrompts = schema((value) => {
  const { text } = value as { text?: string };
  return text !== undefined && text.length > 5
    ? [{ message: "at most 5 characters", path: ["text"] }]
    : [];
});

describe("a session's schema for inputs", () => {
  it("refuses what does not fit with its place, before anything is written", async () => {
    const world = new World();
    const supervisor = await world.open();
    const session = await supervisor.sessions.open("s", { schemas: { input: shortPrompts } });
    const before = await world.rows();
    const error = await session
      .accept({ kind: "prompt", text: "a secret that is too long" })
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ValidationError);
    expect(error).toMatchObject({ issues: [{ path: "/text", expected: "at most 5 characters" }] });
    expect(String(error)).not.toContain("secret");
    expect(await world.rows()).toEqual(before);
    expect((await session.accept({ kind: "prompt", text: "short" })).outcome).toBe("accepted");
  });

  it("that throws is a typed refusal too", async () => {
    const supervisor = await new World().open();
    const input = schema(() => {
      throw new Error("out of order");
    });
    const session = await supervisor.sessions.open("s", { schemas: { input } });
    await expect(session.accept({ kind: "prompt", text: "x" })).rejects.toThrow(/out of order/);
  });

  it("can be given later, to a session in memory", async () => {
    const supervisor = await new World().open();
    const session = await supervisor.sessions.open("s");
    await session.accept({ kind: "prompt", text: "as long as it likes" });
    await supervisor.sessions.open("s", { schemas: { input: shortPrompts } });
    await expect(session.accept({ kind: "prompt", text: "too long now" })).rejects.toThrow(
      ValidationError,
    );
  });

  it("that is none is refused at opening", async () => {
    const supervisor = await new World().open();
    await expect(
      supervisor.sessions.open("s", { schemas: { input: {} as StandardSchemaV1 } }),
    ).rejects.toMatchObject({ issues: [{ path: "/schemas/input" }] });
  });
});

describe("a session's schema for results", () => {
  it("makes a result that does not fit a failed attempt, of which nothing is committed", async () => {
    const world = new World();
    const supervisor = await world.open();
    let turns = 0;
    const session = await supervisor.sessions.open("s", {
      schemas: {
        result: schema((value) => (value === 2 ? [] : [{ message: "the number 2" }])),
      },
      executor: functionExecutor(() => {
        turns += 1;
        return { result: turns, messages: [{ role: "assistant", content: `${turns}` }] };
      }),
    });
    const { inputId, completion } = await acceptPrompt(session, "count");
    expect(await completion).toMatchObject({
      type: "abandoned",
      willRetry: true,
      reason: expect.stringContaining("the number 2"),
    });
    expect(await session.completion(inputId)).toEqual({ type: "completed", result: 2 });
    const said = (await session.transcript()).items.flatMap((entry) => entry.messages);
    expect(said.map((message) => message.content)).toEqual(["count", "2"]);
    await supervisor.close();
    expect(await world.audit()).toEqual([]);
  });
});
