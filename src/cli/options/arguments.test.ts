import { describe, expect, test } from "vitest";
import type { CommandSpec } from "../command.ts";
import { commands } from "../commands.ts";
import { parseArguments } from "./arguments.ts";

const find = (name: string) => commands.find((command) => command.path.join(" ") === name) as CommandSpec;
const exec = find("exec");

describe("parsing a command line", () => {
  test("options end where the command begins", () => {
    const given = parseArguments(exec, ["--memory", "1g", "ls", "--memory", "-la"]);
    expect(given.option("memory")).toBe("1g");
    expect(given.positionals).toEqual(["ls", "--memory", "-la"]);
  });
  test("-- ends options, and what follows is the command's own", () => {
    expect(parseArguments(exec, ["--", "--json"]).positionals).toEqual(["--json"]);
  });
  test("values may be joined by = or follow a short option", () => {
    const given = parseArguments(exec, ["--env=A=1=2", "-eB=2", "-e", "C=3", "--", "x"]);
    expect(given.options("env")).toEqual(["A=1=2", "B=2", "C=3"]);
  });
  test("switches may be joined, as in docker's -it, and end in an option with its value", () => {
    const given = parseArguments(exec, ["-it", "--", "sh"]);
    expect([given.flag("interactive"), given.flag("tty"), given.positionals]).toEqual([true, true, ["sh"]]);
    expect(parseArguments(exec, ["-teA=1", "x"]).options("env")).toEqual(["A=1"]);
  });
  test("a slip of the fingers is named, with what was meant", () => {
    expect(() => parseArguments(exec, ["--memroy", "1g", "x"])).toThrow(
      expect.objectContaining({ code: "invalid", hint: "Did you mean --memory?" }),
    );
  });
  test.each([
    [[], "no command was given"],
    [["--"], "no command was given"],
    [["--", ""], "the command is empty"],
    [["--memory"], "needs a value"],
    [["--memory", "1g", "--memory", "2g", "x"], "given twice"],
    [["--tty=yes", "x"], "takes no value"],
    [["-x", "y"], "unknown option -x"],
    [["-tx", "y"], "unknown option -x"],
  ])("%j is refused", (argv, message) => {
    expect(() => parseArguments(exec, argv)).toThrow(message);
  });
  test("missing and superfluous arguments are named", () => {
    expect(() => parseArguments(find("cp"), ["a"])).toThrow("TARGET is missing");
    expect(() => parseArguments(find("cp"), ["a", "b", "c"])).toThrow('unexpected argument "c"');
  });
  test("--help needs no arguments", () => {
    expect(parseArguments(find("cp"), ["--help"]).flag("help")).toBe(true);
  });
  test("asking for an option that the command does not declare is a defect", () => {
    expect(() => parseArguments(find("config"), []).option("memory")).toThrow("has no option");
  });
});

describe("the command table", () => {
  test("names and short options are unique in each command", () => {
    for (const command of commands) {
      const names = command.options.map((option) => option.name);
      const shorts = command.options.flatMap((option) => option.short ?? []);
      expect(new Set(names).size, command.path.join(" ")).toBe(names.length);
      expect(new Set(shorts).size, command.path.join(" ")).toBe(shorts.length);
      expect(command.examples.length, command.path.join(" ")).toBeGreaterThan(0);
    }
  });
  test("every command can be loaded", async () => {
    for (const command of commands) expect((await command.load()).run, command.path.join(" ")).toBeTypeOf("function");
  });
});
