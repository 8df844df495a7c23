import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandDefinition } from "../command.ts";
import { commands } from "../commands.ts";
import type { CliContext } from "../context.ts";
import { parseArguments } from "../options/arguments.ts";
import { textGiven } from "./read-task-text.ts";

const definition = commands.find((command) => command.path.join(" ") === "run") as CommandDefinition;
let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), "caisson-task-"));
  await writeFile(join(cwd, "TASK.md"), "# Fix it\n\nAll of it.\n");
  await writeFile(join(cwd, "empty"), " \n");
  await writeFile(join(cwd, "nul"), "a\0b");
  await writeFile(join(cwd, "latin1"), Buffer.from([0x66, 0xfc, 0x72]));
  await writeFile(join(cwd, "large"), Buffer.alloc(1024 * 1024 + 1, "x"));
});
afterAll(() => rm(cwd, { recursive: true, force: true }));

const readText = (argv: string[], input: (string | Buffer)[] = [], options = { what: "task" as "task" | "message", wordsBefore: 1 }) =>
  textGiven({ cwd, stdin: Readable.from(input) as unknown as CliContext["stdin"] }, parseArguments(definition, argv), options);

describe("reading a task", () => {
  test.each([
    [["fix it"], [], "fix it"],
    [["reviewer", "look", "at it"], ["reviewer"], "look at it"],
    [["--task-file", "TASK.md"], [], "# Fix it\n\nAll of it."],
    [["reviewer", "--task-file", "TASK.md"], ["reviewer"], "# Fix it\n\nAll of it."],
    [["-"], [], "from the pipe"],
    [["reviewer", "-"], ["reviewer"], "from the pipe"],
    [["use", "a", "-"], ["use"], "a -"],
  ])("from %j", async (argv, before, text) => {
    expect(await readText(argv, ["from ", "the pipe\n"])).toEqual({ before, text });
  });

  test("takes all words as a message if no agent may precede it", async () => {
    const options = { what: "message" as const, wordsBefore: 0 };
    expect(await readText(["now", "the tests"], [], options)).toEqual({ before: [], text: "now the tests" });
    expect(await readText(["-"], ["more"], options)).toEqual({ before: [], text: "more" });
  });

  test("decodes characters that the input splits", async () => {
    const bytes = Buffer.from("grün");
    expect((await readText(["-"], [bytes.subarray(0, 3), bytes.subarray(3)])).text).toBe("grün");
  });

  test.each([
    [[], [], "invalid", "there is no task"],
    [["  "], [], "invalid", "there is no task"],
    [["-"], [], "invalid", "standard input is empty"],
    [["-"], ["a\0b"], "invalid", "NUL"],
    [["-"], [Buffer.alloc(1024 * 1024 + 1, "x")], "too_large", "larger than 1"],
    [["--task-file", "empty"], [], "invalid", "empty is empty"],
    [["--task-file", "nul"], [], "invalid", "NUL"],
    [["--task-file", "latin1"], [], "invalid", "UTF-8"],
    [["--task-file", "large"], [], "too_large", "larger than 1"],
    [["--task-file", "."], [], "invalid", "is not a file"],
    [["--task-file", "none"], [], "not_found", "does not exist"],
    [["--task-file", "TASK.md", "coder", "and more"], [], "invalid", "given twice"],
  ])("rejects %j", async (argv, input, code, message) => {
    await expect(readText(argv, input)).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });
});
