/** docs/cli.md against the command line as it is built. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inputMachine } from "../../machines/input.js";
import { exitCodeOf, exitCodes } from "../../src/cli/exit-codes.js";
import * as errors from "../../src/errors.js";
import { Directory, echo, endOf, type JsonLine, main, shell } from "../cli/run-cli.js";
import { codeBlocks, readPage, section, tableRows } from "./page.js";

const page = readPage("cli.md");
const plain = (cell: string): string => cell.replaceAll("`", "");
/** What stands in marks of code. */
const names = (text: string): readonly string[] =>
  [...text.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
const firstCells = (heading: string): readonly string[] =>
  tableRows(page, heading).map(([cell = ""]) => plain(cell));

let directory: Directory;
let help: Help;
beforeAll(async () => {
  directory = new Directory();
  help = await helps();
});
afterAll(() => directory.remove());

interface Help {
  /** As the help writes them: `list [options] <session>`. */
  readonly commands: readonly string[];
  readonly options: readonly string[];
}

async function helpOf(command: readonly string[]): Promise<Help> {
  const { stdout, code } = await directory.run([...command, "--help"]);
  expect(code).toBe(exitCodes.ok);
  const part = (name: string): readonly string[] => {
    const text = stdout.split(`\n${name}:\n`)[1]?.split(/\n\n/)[0] ?? "";
    // Entries are indented by two; what goes on is indented further.
    return text
      .split("\n")
      .filter((line) => /^ {2}\S/.test(line))
      .map((line) => line.trim().split(/ {2,}/)[0] ?? "");
  };
  return { commands: part("Commands"), options: part("Options") };
}

/** Every command that does something, and every option, as the helps show them. */
async function helps(): Promise<Help> {
  const commands = new Set<string>();
  const options = new Set<string>();
  const look = async (path: readonly string[]): Promise<void> => {
    const found = await helpOf(path);
    // A command that is a group of others does nothing by itself.
    if (found.commands.length === 0) commands.add(path.join(" "));
    for (const option of found.options) options.add(option.replace(/^-\w, /, ""));
    for (const entry of found.commands) {
      const [name = "", ...args] = entry.replace(" [options]", "").split(" ");
      if (name === "help") commands.add([name, ...args].join(" "));
      else await look([...path, name]);
      if (commands.delete([...path, name].join(" ")))
        commands.add([...path, name, ...args].join(" "));
    }
  };
  await look([]);
  return { commands: [...commands], options: [...options] };
}

describe("docs/cli.md", () => {
  it("has every command of the help, and no other", () => {
    const { commands } = help;
    expect(commands.length).toBeGreaterThan(5);
    expect([...firstCells("command")].sort()).toEqual([...commands].sort());
  });

  it("has every option of the help, and no other", () => {
    const { options } = help;
    expect(options.length).toBeGreaterThan(5);
    expect([...firstCells("option")].sort()).toEqual([...options].sort());
    const longOptions = new Set(page.match(/(?<![\w-])--[a-z][\w-]*/g));
    expect([...longOptions].sort()).toEqual(options.map((name) => name.split(" ")[0]).sort());
  });

  it("has every exit code with its name, and no other", () => {
    const rows = tableRows(section(page, "Exit codes"), "code");
    expect(rows.map(([code, name = ""]) => [plain(name), Number(code)])).toEqual(
      Object.entries(exitCodes),
    );
  });

  it("names each error at the exit code that it has", () => {
    const rows = tableRows(section(page, "Exit codes"), "code");
    const documented = rows.flatMap(([code, , when = ""]) =>
      names(when)
        .filter((tag) => tag in errors)
        .map((tag) => [tag, Number(code)]),
    );
    const known = documented.map(([tag]) => {
      const error = Object.assign(new Error(), { _tag: tag, code: "HOLDFAST_X" });
      return [tag, exitCodeOf(error)];
    });
    expect(documented).toEqual(known);
    const classes = Object.keys(errors).filter((name) => /^Store[A-Z]|Error$/.test(name));
    const carriers = ["HoldfastError", "StoreError", "OperationError", "isHoldfastError"];
    expect(documented.map(([tag]) => tag).sort()).toEqual(
      classes.filter((name) => !carriers.includes(name)).sort(),
    );
  });

  it("names every phase", () => {
    for (const phase of Object.keys(inputMachine.config.states ?? {})) {
      expect(page).toContain(`\`${phase}\``);
    }
  });

  it("names every invariant that an audit reports", () => {
    const rooms = ["sessions", "cli"].map((name) => new URL(`../../src/${name}/`, import.meta.url));
    const found = new Set(["files"]);
    for (const room of rooms) {
      for (const name of readdirSync(room)) {
        if (!/^(audit|verify).*\.ts$/.test(name)) continue;
        const source = readFileSync(new URL(name, room), "utf8");
        for (const [, invariant = ""] of source.matchAll(/"(I\d+)"/g)) found.add(invariant);
        for (const [, invariant = ""] of source.matchAll(/invariant: "(\w+)"/g))
          found.add(invariant);
      }
    }
    expect(found.size).toBeGreaterThan(5);
    expect(firstCells("invariant").slice().sort()).toEqual([...found].sort());
  });
});

describe("the examples of docs/cli.md", () => {
  it("work as they stand", async () => {
    const place = new Directory();
    try {
      symlinkSync(fileURLToPath(new URL("../../docs", import.meta.url)), place.file("docs"));
      const [examples = ""] = codeBlocks(page, "sh");
      expect(examples.split("\n").length).toBeGreaterThan(5);
      const npx = `npx() { shift; "${process.execPath}" "${main}" "$@"; }\nset -e\n`;
      const run = await endOf(
        spawn("sh", ["-c", npx + examples], { cwd: place.path, stdio: "pipe" }),
      );
      expect(run).toMatchObject({ code: 0 });
      expect(run.stdout).toContain("The pool is open from 6:00 to 22:00.");
      expect(run.stdout).toContain("Sound: ");
    } finally {
      place.remove();
    }
  });

  it("of input are accepted, one of each kind", async () => {
    const [lines = ""] = codeBlocks(page, "jsonl");
    const kinds = lines
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).kind ?? "prompt");
    expect([...kinds].sort()).toEqual([...firstCells("kind")].sort());
    const { code, values } = await directory.json(["session", "kinds"], lines);
    expect(code).toBe(exitCodes.ok);
    expect(values.at(-1)).toMatchObject({ accepted: kinds.length, refused: 0 });
  });

  it("of fields are all that an input of each kind takes", async () => {
    const rows = tableRows(page, "kind");
    const lines = rows.map(([kind = ""]) => JSON.stringify({ kind: plain(kind), noSuchField: 1 }));
    const { stderr } = await directory.run(["session", "fields"], lines.join("\n"));
    const taken = [...stderr.matchAll(/\/noSuchField is unknown, expected ([\w, ]+)/g)];
    const [, common = ""] = /Every kind may carry ([^.]*)\./.exec(page) ?? [];
    expect(taken.map(([, fields = ""]) => fields.split(", ").sort())).toEqual(
      rows.map(([, own = ""]) => ["kind", ...names(common), ...names(own)].sort()),
    );
  });
});

describe("what is printed with --json", () => {
  /** Type → the fields that the page names. */
  const documented = new Map(
    tableRows(page, "type").map(([type = "", , fields = ""]) => [plain(type), names(fields)]),
  );

  it("has the types and fields that the page names, and each of them", async () => {
    const place = new Directory();
    try {
      const values: JsonLine[] = [];
      const take = async (args: readonly string[], input: string) =>
        values.push(...(await place.json(args, input)).values);
      const line = (rest: object) => `${JSON.stringify({ text: "hello", ...rest })}\n`;
      const keyed = line({ idempotencyKey: "k" });
      const callback = `echo '{"callback":{"tool":"ask","args":1}}'`;
      await take(["session", "a"], keyed);
      await take(
        ["session", "a", "--exec", ...echo],
        `${keyed}${line({ text: "other", idempotencyKey: "k" })}${line({ idempotencyKey: "k2" })}`,
      );
      await take(["session", "a"], line({ durability: "derived", idempotencyKey: "k3" }));
      await take(["session", "b"], line({ idempotencyKey: "k" }));
      await take(["session", "b", "--exec", "false"], line({ idempotencyKey: "k2" }));
      await take(["session", "c", "--exec", ...shell(callback)], line({}));
      expect(new Set(values.map(({ type }) => type))).toEqual(new Set(documented.keys()));
      for (const [type, fields] of documented) {
        const found = new Set(
          values.filter((value) => value.type === type).flatMap((value) => Object.keys(value)),
        );
        // `error` goes with `completedWithFinalizationFailure`, which no program can bring about.
        const expected = fields.filter((name) => name !== "error");
        expect([...found].sort(), type).toEqual(["type", ...expected].sort());
      }
    } finally {
      place.remove();
    }
  });

  it("gives a program the turn that the page describes", async () => {
    await directory.run(["session", "turn", "--exec", ...shell("cat > turn.json")], "hello\n");
    const turn = JSON.parse(directory.read("turn.json"));
    const rows = tableRows(section(page, "The program of `--exec`"), "field");
    expect(rows.map(([name = ""]) => plain(name))).toEqual(Object.keys(turn));
    const [, inputs = ""] = rows.find(([name]) => name === "`inputs`") ?? [];
    expect(names(inputs)).toEqual(Object.keys(turn.inputs[0]));
    expect(turn.inputs[0].payload).toEqual({ text: "hello" });
  });

  it.each([
    ["an answer", `printf '{"result":{"a":1}}'`, { outcome: "completed", result: { a: 1 } }],
    ["other JSON", `printf '{"a":1}'`, { outcome: "completed", result: '{"a":1}' }],
    ["text", `printf 'one\\ntwo\\n\\n'`, { outcome: "completed", result: "one\ntwo" }],
    ["nothing", "true", { outcome: "completedWithoutResult" }],
  ])("takes %s on stdout as the page says", async (name, script, expected) => {
    const { values } = await directory.json(["session", name, "--exec", ...shell(script)], "x\n");
    expect(values.find(({ type }) => type === "completed")).toMatchObject(expected);
  });
});
