import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";
import type { CommandDefinition } from "../command.ts";
import { commands } from "../commands.ts";

const { onTerminal, base } = useTerminalCli();

/** Texts that only programmers should see: messages of the schema validator, and defects. */
const foreign =
  /✖|→ at |ZodError|"code":|Invalid (input|string|key|option)|Unrecognized key|Too (small|big)|expected (number|string|array|object|int)|received |must match pattern|defect in Caisson/;

const bad = ["", "maybe", "0", "-1", "1k", "99999999999999999999", "FOO@", "a b", "/"];
/** Commands tested with every bad value, because they have all options for new sandboxes. */
const thorough = new Set(["exec", "run"]);
/** Commands that ignore their input. */
const tours = new Set(["demo"]);

const named = (command: CommandDefinition) => command.path.join(" ");

describe.each(commands.filter((command) => !tours.has(named(command))).map((command) => [named(command), command] as const))(
  "caisson %s",
  (name, command) => {
    test("reports bad values in its own words", async () => {
      const words = command.arguments.filter((argument) => argument.optional !== true).map(() => "x");
      const hasRuntime = command.options.some((option) => option.name === "runtime");
      const separator = command.takesCommand === true ? ["--"] : [];
      for (const { name: option, value } of command.options) {
        if (value === undefined) continue;
        for (const text of thorough.has(name) ? bad : bad.slice(0, 2)) {
          // If the value happens to be valid, an unknown runtime keeps the command from creating anything.
          const nowhere = hasRuntime && option !== "runtime" ? ["--runtime", "none-such"] : [];
          const argv = [...command.path, ...nowhere, `--${option}=${text}`, ...separator, ...words];
          expect((await onTerminal(argv)).text, argv.join(" ")).not.toMatch(foreign);
        }
      }
    });
  },
);

describe("an error for a bad value names the option and the allowed values", () => {
  test.each([
    [["run", "x", "--on-ask", "maybe"], '--on-ask "maybe" is not wait or deny'],
    [["run", "x", "--on-budget", "maybe"], '--on-budget "maybe" is not ask or stop'],
    [["run", "x", "--memory", "1m"], "--memory must be at least 4 MiB"],
    [["run", "x", "--timeout", "1ms"], "--timeout must be at least 1000"],
    [["exec", "--memory", "1m", "--", "x"], "--memory must be at least 4 MiB"],
    [["exec", "--disk", "1k", "--", "x"], "--disk must be at least 1 MiB"],
    [["exec", "--cpus", "2000", "--", "x"], "--cpus must be at most 1024"],
    [["exec", "--snapshot", "sn_X", "--", "x"], '"sn_X" is not a snapshot'],
    [["exec", "--name", "run_x", "--", "x"], "--name must not begin with sb_, sn_, ses_ or run_, as ids do"],
    [["exec", "--secret", "FOO@", "--", "x"], '"FOO@" is not a secret: HOST must not be empty'],
    [["exec", "--network", "opne", "--", "x"], '"opne" is not a host'],
    [["exec", "--network", "registry", "--", "x"], "Did you mean registries?"],
    [["exec", "--network", "GET", "--", "x"], "Write the method before the host"],
    [["spec", "new", "x", "--phase-agent", "desing=a"], '--phase-agent "desing" is not explore'],
    [["spec", "new", "x", "--phase-agent", "design="], "--phase-agent design= names no agent"],
    [["spec", "new", "x", "--phase-agent", "design=a", "--phase-agent", "design=b"], "--phase-agent is given twice for design"],
    [["exec", "--hide", "../x", "--", "x"], '--hide "../x" is not a pattern'],
  ])("%j", async (argv, message) => {
    const { code, text } = await onTerminal(argv);
    expect(text).toContain(message);
    expect(code).toBe(125);
  });

  test("in an agent file (a limit that is too small)", async () => {
    const agents = join(base(), "work", ".caisson", "agents");
    await mkdir(agents, { recursive: true });
    await writeFile(join(agents, "small.prompt"), "---\nsandbox:\n  memory: 1k\n---\nx");
    const { text } = await onTerminal(["agent", "validate", ".caisson/agents/small.prompt"]);
    expect(text).toMatch(/memoryBytes must be at least 4 MiB/);
    expect(text).not.toMatch(foreign);
  });
});
