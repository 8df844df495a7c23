import { describe, expect, test } from "vitest";
import type { CommandDefinition, ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseArguments } from "../options/arguments.ts";
import { type Line, line } from "../terminal/line.ts";
import { jobCommands, reasonOption } from "./define-job-commands.ts";
import type { JobKind } from "./job-commands.ts";

interface View {
  id: string;
  state: string;
}

/** Defines a made-up kind of durable job that records its calls. */
function voyages() {
  const calls: unknown[] = [];
  const change = (state: string) => async (word: string, options: object) => {
    calls.push([state, word, options]);
    return { id: `voy_${word}`, state };
  };
  const kind: JobKind<View> = {
    verb: "voyage",
    verbs: () => ({
      get: async (word) => ({ id: `voy_${word}`, state: "at sea" }),
      pause: change("paused"),
      cancel: change("cancelled"),
      remove: async (id) => calls.push(["removed", id]),
    }),
    idOf: ({ id }) => id,
    list: async () => [{ id: "voy_a", state: "at sea" }],
    rows: (items) => items.map(({ id }) => line`row ${id}`),
    lines: ({ id, state }) => [line`${id} is ${state}`],
    reportCancelled: async (context, _args, { id }) => {
      await context.stdout.print(line`${id} turns round`);
      return 3;
    },
    resume: async () => 7,
  };
  const commands = jobCommands({
    verb: "voyage",
    argument: { name: "VOYAGE", summary: "a voyage's id" },
    exampleId: "voy_k3v",
    commands: {
      ls: { summary: "List voyages" },
      show: { summary: "Show a voyage" },
      pause: { summary: "Pause a voyage", options: [reasonOption, { name: "json", summary: "Print JSON" }] },
      resume: { summary: "Resume a voyage" },
      cancel: { summary: "Cancel a voyage" },
      rm: { summary: "Remove voyages" },
    },
    load: async () => kind,
  });
  return { commands, kind, calls };
}

async function run(command: CommandDefinition, argv: readonly string[]) {
  const output = { stdout: [] as unknown[], stderr: [] as unknown[] };
  const stream = (name: "stdout" | "stderr") => ({
    print: async (lines: Line | readonly Line[]) => void output[name].push(...[lines].flat().map((each) => (each as Line).text)),
    printJson: async (value: unknown) => void output[name].push(value),
  });
  const context = { stdout: stream("stdout"), stderr: stream("stderr"), station: {} } as unknown as CliContext;
  const args: ParsedArguments = parseArguments(command, argv);
  return { code: await (await command.load())(context, args), ...output };
}

describe("the commands of a new kind of durable job", () => {
  const { commands, kind, calls } = voyages();

  test("are defined by the kind's names and summaries", () => {
    expect(Object.values(commands).map(({ path }) => path.join(" "))).toEqual([
      ...["voyage ls", "voyage show", "voyage pause", "voyage resume", "voyage cancel", "voyage rm"],
    ]);
    expect(commands.ls).toMatchObject({ arguments: [], examples: ["caisson voyage ls"] });
    expect(commands.show).toMatchObject({ arguments: [{ name: "VOYAGE" }], examples: ["caisson voyage show voy_k3v"] });
    expect(commands.rm.arguments).toEqual([{ name: "VOYAGE", summary: "a voyage's id", repeat: true }]);
    for (const { options } of Object.values(commands)) expect(options.map(({ name }) => name)).toContain("json");
  });

  test("list and show it, for people and as JSON", async () => {
    expect(await run(commands.ls, [])).toMatchObject({ code: 0, stdout: ["row voy_a"] });
    expect(await run(commands.ls, ["--json"])).toMatchObject({ stdout: [[{ id: "voy_a", state: "at sea" }]] });
    expect(await run(commands.show, ["a"])).toMatchObject({ code: 0, stdout: ["voy_a is at sea"] });
    expect(await run(commands.show, ["a", "--json"])).toMatchObject({ stdout: [{ id: "voy_a", state: "at sea" }] });
  });

  test("pause it with a reason, and print how to resume it", async () => {
    const paused = await run(commands.pause, ["a", "--text", "storm"]);
    expect(paused).toEqual({
      code: 0,
      stdout: [],
      stderr: ["caisson: voy_a starts nothing more until you run: caisson voyage resume voy_a"],
    });
    expect(calls.at(-1)).toEqual(["paused", "a", { by: "user", text: "storm" }]);
    expect(await run(commands.pause, ["a", "--json"])).toEqual({ code: 0, stdout: [{ id: "voy_a", state: "paused" }], stderr: [] });
  });

  test("cancel and resume it with the kind's own report and exit code", async () => {
    expect(await run(commands.cancel, ["a"])).toEqual({ code: 3, stdout: ["voy_a turns round"], stderr: [] });
    expect(calls.at(-1)).toEqual(["cancelled", "a", { by: "user" }]);
    expect(await run(commands.resume, ["a"])).toMatchObject({ code: 7 });
  });

  test("report the actor that the kind defines", async () => {
    kind.actor = () => "ada";
    await run(commands.cancel, ["a"]);
    expect(calls.at(-1)).toEqual(["cancelled", "a", { by: "ada" }]);
  });

  test("remove several by id, and print them as one JSON list", async () => {
    expect(await run(commands.rm, ["a", "b"])).toEqual({ code: 0, stdout: ["voy_a", "voy_b"], stderr: [] });
    expect(calls.slice(-2)).toEqual([
      ["removed", "voy_a"],
      ["removed", "voy_b"],
    ]);
    expect(await run(commands.rm, ["a", "b", "--json"])).toEqual({ code: 0, stdout: [{ removed: ["voy_a", "voy_b"] }], stderr: [] });
  });
});
