import { describe, expect, test } from "vitest";
import type { CommandDefinition } from "../command.ts";
import { commands } from "../commands.ts";
import { parseArguments } from "./arguments.ts";

const find = (name: string) => commands.find((command) => command.path.join(" ") === name) as CommandDefinition;
const exec = find("exec");

describe("parsing a command line", () => {
  test("stops parsing options where the command begins", () => {
    const args = parseArguments(exec, ["--memory", "1g", "ls", "--memory", "-la"]);
    expect(args.option("memory")).toBe("1g");
    expect(args.positionals).toEqual(["ls", "--memory", "-la"]);
  });
  test("treats everything after -- as the command", () => {
    expect(parseArguments(exec, ["--", "--json"]).positionals).toEqual(["--json"]);
  });
  test("accepts values after =, or directly after a short option", () => {
    const args = parseArguments(exec, ["--env=A=1=2", "-eB=2", "-e", "C=3", "--", "x"]);
    expect(args.options("env")).toEqual(["A=1=2", "B=2", "C=3"]);
  });
  test("splits joined switches such as -it, and lets the last one take a value", () => {
    const args = parseArguments(exec, ["-it", "--", "sh"]);
    expect([args.flag("interactive"), args.flag("tty"), args.positionals]).toEqual([true, true, ["sh"]]);
    expect(parseArguments(exec, ["-teA=1", "x"]).options("env")).toEqual(["A=1"]);
  });
  test("suggests the nearest option for a typo", () => {
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
  ])("rejects %j", (argv, message) => {
    expect(() => parseArguments(exec, argv)).toThrow(message);
  });
  test("names missing and superfluous arguments", () => {
    expect(() => parseArguments(find("cp"), ["a"])).toThrow("TARGET is missing");
    expect(() => parseArguments(find("cp"), ["a", "b", "c"])).toThrow('unexpected argument "c"');
  });
  test("accepts --help without arguments", () => {
    expect(parseArguments(find("cp"), ["--help"]).flag("help")).toBe(true);
  });
  test("throws a defect if a command reads an option that it does not declare", () => {
    expect(() => parseArguments(find("config"), []).option("memory")).toThrow("has no option");
  });
});

describe("the command table", () => {
  test("has unique names and short options in each command", () => {
    for (const command of commands) {
      const names = command.options.map((option) => option.name);
      const shorts = command.options.flatMap((option) => option.short ?? []);
      expect(new Set(names).size, command.path.join(" ")).toBe(names.length);
      expect(new Set(shorts).size, command.path.join(" ")).toBe(shorts.length);
      expect(command.examples.length, command.path.join(" ")).toBeGreaterThan(0);
    }
  });
  test("gives every command --json except the interactive ones", () => {
    const withoutJson = commands.filter(({ options }) => !options.some(({ name }) => name === "json"));
    // These talk to a person or another program, or print a script.
    expect(withoutJson.map(({ path }) => path.join(" "))).toEqual(["chat", "shell", "net serve", "mcp", "demo", "completion"]);
  });
  test("can load every command", async () => {
    for (const command of commands) expect(await command.load(), command.path.join(" ")).toBeTypeOf("function");
  });
});
