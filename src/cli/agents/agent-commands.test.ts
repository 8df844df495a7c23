import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";

const cli = useTerminalCli();

const caisson = async (...argv: string[]) => {
  const { code, text } = await cli.onTerminal(argv);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is taken out.
  return { code, text: text.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]/g, "") };
};

/** Writes agents to the user's config folder, where they need no trust. */
async function agents(files: Record<string, string>): Promise<void> {
  const folder = join(cli.base(), "config", "agents");
  await mkdir(folder, { recursive: true });
  for (const [name, frontmatter] of Object.entries(files))
    await writeFile(join(folder, `${name}.prompt`), `---\nname: ${name}\n${frontmatter}\n---\nYou are ${name}.\n`);
}

test("`agent validate` and `run` reject unknown agents, tools and models up front", async () => {
  await agents({
    boss: "agents: [helper, missing]",
    helper: "tools: [read, fly, mcp:none]\nmodel: nowhere",
    chief: "agents: [helper]",
    fine: "tools: [read]\nagents: [coder]\nmodel: anthropic/some-model",
  });
  const files = ["boss", "chief", "fine"].map((name) => `../config/agents/${name}.prompt`);
  const checked = await caisson("agent", "validate", ...files);
  expect(checked.code).toBe(1);
  expect(checked.text).toMatch(/agents\/boss\.prompt: there is no agent "missing"\nhint: Available agents: /);
  expect(checked.text).toMatch(/agents\/chief\.prompt: the agent helper requests an unknown tool "fly"/);
  expect(checked.text).toMatch(/agents\/chief\.prompt: the agent helper requests the tools of the MCP server "none"/);
  expect(checked.text).toMatch(/agents\/chief\.prompt: "nowhere" is not a model/);
  // A missing API key is not a fault of the file.
  expect(checked.text).toContain("agents/fine.prompt: good");
  const script = join(cli.base(), "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ say: "Done." }] }));
  for (const [agent, words] of [
    ["boss", /there is no agent "missing"/],
    ["helper", /an unknown tool/],
    ["chief", /unknown tool "fly"/],
  ] as const) {
    const refused = await caisson("run", agent, "do it", "--model", `scripted:${script}`);
    expect(refused, refused.text).toMatchObject({ code: 125, text: expect.stringMatching(words) });
  }
  expect((await caisson("ps", "--all")).text).toContain("No runs yet");
  expect((await caisson("session", "ls")).text).toContain("No sessions yet");
});

test("`agent show` prints a table, or JSON with --json", async () => {
  await agents({
    reviewer: "description: Reads changes.\ntools: [read, grep]\npermissions: { 'bash:*': deny }\nsandbox:\n  network: example.com",
  });
  const { code, text } = await caisson("agent", "show", "reviewer");
  expect(code).toBe(0);
  expect(text).toMatch(/^reviewer: Reads changes\.\n/);
  for (const row of [/tools +read, grep\n/, /permissions +deny bash:\*\n/, /network +.*example\.com/, /bounds +50 steps, 30 min of work/])
    expect(text).toMatch(row);
  expect(text).toMatch(/Instructions:\n {2}You are reviewer\.\n/);
  expect(text).not.toMatch(/[{}]/);
  expect(JSON.parse((await caisson("agent", "show", "reviewer", "--json")).text)).toMatchObject({
    name: "reviewer",
    tools: ["read", "grep"],
  });
});

test("`session info` prints a table, or JSON with --json", async () => {
  const script = join(cli.base(), "script.json");
  const turns = [{ calls: [{ tool: "write", arguments: { path: "a.txt", content: "x" } }] }, { say: "Done." }];
  await writeFile(script, JSON.stringify({ turns }));
  expect((await caisson("run", "the task", "--model", `scripted:${script}`, "--session", "mine")).code).toBe(0);
  const { code, text } = await caisson("session", "info", "mine");
  expect(code).toBe(0);
  expect(text).toMatch(/^mine\n {2}workspace +.*work\n/);
  for (const row of [
    /lock +free\n/,
    /belongs to +a session\n/,
    /kept +until you remove it\n/,
    /run_\w+ +done +the task\n/,
    /run_\w+ ended: done\n/,
  ])
    expect(text).toMatch(row);
  expect(text).not.toMatch(/[{}]/);
  expect(JSON.parse((await caisson("session", "info", "mine", "--json")).text)).toMatchObject({ id: "mine", runs: [{ task: "the task" }] });
});

test("`run` explains a missing task and an unquoted one", async () => {
  await agents({ boss: "description: Leads." });
  expect(await caisson("run", "boss")).toMatchObject({
    code: 125,
    text: expect.stringMatching(/boss is an agent, but there is no task[\s\S]*caisson run boss "…"/),
  });
  const unquoted = await caisson("run", "fix", "the", "bug");
  expect(unquoted).toMatchObject({ code: 125, text: expect.stringMatching(/there is no agent "fix"\nhint: .*caisson run "fix the bug"/) });
  expect((await caisson("ps", "--all")).text).toContain("No runs yet");
});
