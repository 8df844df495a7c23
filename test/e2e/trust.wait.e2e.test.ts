import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";
import { startTerminal } from "../support/tmux.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const done = () => cli.script({ turns: [{ say: "Done." }] });
const put = (folder: string, path: string, text: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const agent = (frontmatter: string) => `---\n${frontmatter}\n---\nYou work.\n`;
/** Returns an agent file whose secret leaves a mark if its command ever runs. */
const commandSecret = (mark: string) =>
  agent(
    `name: coder\nsandbox:\n  network: [e.test]\n  secrets:\n    X: { hosts: [e.test], from: { command: [sh, -c, "id > ${mark}; echo valuevalue"] } }`,
  );
const sessions = () => (existsSync(join(cli.home(), "sessions")) ? readdirSync(join(cli.home(), "sessions")) : []);

describe("an agent file that comes with a folder", () => {
  test.each([".caisson/agents/coder.prompt", "agents/coder.prompt"])(
    "%s does not replace the built-in agent or run a command on the host",
    async (path) => {
      const folder = await cli.folder();
      const mark = join(await cli.folder(), "ran");
      put(folder, path, commandSecret(mark));
      const result = await cli.run(["run", "fix the test", "--model", await done(), "--no-workspace"], { cwd: folder });
      expect(result).toMatchObject({
        code: 0,
        stderr: expect.stringContaining(`${path} is not used: the agent coder is the built-in one`),
      });
      const before = sessions();
      const named = await cli.run(["run", path, "fix the test", "--model", await done()], { cwd: folder });
      expect([named.code, named.stderr]).toEqual([125, expect.stringContaining("cannot define where a secret comes from")]);
      const trusted = await cli.run(["trust", "--yes"], { cwd: folder });
      expect([trusted.code, trusted.text]).toEqual([1, expect.stringContaining("It cannot be trusted as it is.")]);
      expect((await cli.run(["run", path, "fix the test", "--model", await done()], { cwd: folder })).code).toBe(125);
      expect([existsSync(mark), sessions()]).toEqual([false, before]);
    },
  );

  test("gains nothing from being written inside and applied", async () => {
    const folder = await cli.folder();
    const mark = join(await cli.folder(), "ran");
    const write = (path: string) => ({ tool: "write", arguments: { path, content: commandSecret(mark) } });
    const writing = await cli.script({
      turns: [{ calls: [write("agents/coder.prompt"), write(".caisson/agents/coder.prompt")] }, { say: "Done." }],
    });
    expect((await cli.run(["run", "x", "--model", writing], { cwd: folder })).code).toBe(0);
    expect((await cli.run(["apply", "--include-config"], { cwd: folder })).code).toBe(0);
    expect(existsSync(join(folder, "agents/coder.prompt"))).toBe(true);
    expect((await cli.run(["run", "x", "--model", await done()], { cwd: folder })).code).toBe(0);
    expect(existsSync(mark)).toBe(false);
  });

  describe("that requests a network", () => {
    let port = 0;
    const server = createServer((_request, response) => void response.end("what the host serves"));
    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      port = (server.address() as AddressInfo).port;
    });
    afterAll(() => new Promise((resolve) => server.close(resolve)));

    test("is refused until it is trusted, after a change, and once trust is revoked", async () => {
      const folder = await cli.folder();
      const rule = `private host.caisson:${port}`;
      put(folder, "agents/net.prompt", agent(`sandbox: { network: ["${rule}"] }`));
      const fetching = await cli.script({
        turns: [{ calls: [{ tool: "bash", arguments: { command: `curl -sS http://host.caisson:${port}/` } }] }, { say: "Done." }],
      });
      const go = () => cli.run(["run", "net", "look", "--model", fetching, "--json"], { cwd: folder });

      const refused = await go();
      expect(refused.code).toBe(125);
      const { error } = JSON.parse(refused.text) as { error: { code: string; message: string; hint: string } };
      expect(error).toMatchObject({
        code: "denied",
        message: `agents/net.prompt requests rights that you have not granted:\n+ have a network\n+ reach ${rule}`,
        hint: expect.stringContaining("caisson trust agents/net.prompt"),
      });
      const alone = await cli.run(["trust", "agents/net.prompt"], { cwd: folder });
      expect([alone.code, alone.stderr]).toEqual([125, expect.stringContaining("there is no terminal to ask on")]);
      const looked = await cli.run(["trust", "--json"], { cwd: folder });
      expect([looked.code, JSON.parse(looked.text)]).toMatchObject([
        1,
        [{ status: "not trusted", rights: [{}, { text: `reach ${rule}`, change: "added" }] }],
      ]);
      expect((await go()).code).toBe(125);

      expect((await cli.run(["trust", "--yes", "agents/net.prompt"], { cwd: folder })).code).toBe(0);
      const granted = await go();
      expect([granted.code, granted.text]).toEqual([0, expect.stringContaining("what the host serves")]);
      expect(granted.stderr).toContain("the agent net is agents/net.prompt, a file that is not your own");

      put(folder, "agents/net.prompt", agent(`sandbox: { network: ["${rule}", evil.test] }`));
      expect((await go()).text).toContain("has changed since you trusted it");
      const changed = await cli.run(["trust", "--json"], { cwd: folder });
      expect(JSON.parse(changed.text)[0].rights).toMatchObject([
        { change: "kept" },
        { change: "kept" },
        { text: "reach evil.test", change: "added" },
      ]);
      expect((await cli.run(["trust", "--list"], { cwd: folder })).text).toMatch(/agents\/net\.prompt +changed since/);

      put(folder, "agents/net.prompt", agent(`sandbox: { network: ["${rule}"] }`));
      expect((await cli.run(["trust", "--list", "--json"], { cwd: folder })).text).toContain('"state":"trusted"');
      expect((await cli.run(["trust", "--revoke", "agents/net.prompt"], { cwd: folder })).code).toBe(0);
      expect((await go()).code).toBe(125);
      expect((await cli.run(["trust", "--revoke", "agents/net.prompt"], { cwd: folder })).code).toBe(1);
    });

    test("gets what the command line specifies instead, without being trusted", async () => {
      const folder = await cli.folder();
      put(folder, "agents/net.prompt", agent(`model: anthropic/x\nsandbox: { network: [open], memory: 64g }`));
      const model = await cli.script({
        turns: [{ calls: [{ tool: "bash", arguments: { command: `curl -sS http://host.caisson:${port}/` } }] }, { say: "Done." }],
      });
      const argv = ["run", "net", "look", "--model", model, "--network", "none", "--memory", "1g", "--json"];
      const { code, events } = await cli.run(argv, { cwd: folder });
      expect(code).toBe(0);
      expect(events[0]).toMatchObject({
        data: { agent: { definition: { sandbox: { network: { mode: "none" }, limits: { memoryBytes: 2 ** 30 } } } } },
      });
    });
  });

  test("is trusted only after a yes on a terminal", async () => {
    const folder = await cli.folder();
    put(folder, "agents/a.prompt", agent('sandbox: { environment: { A: "\\e[2K\\r  nothing" } }'));
    await using terminal = await startTerminal({ cwd: folder, env: cli.environment({}) });
    for (const [answer, code] of [
      ["", 1],
      ["y", 0],
    ] as const) {
      await terminal.type(`${cli.commandLine()} trust; echo "code $?" ${answer || "no"}\n`);
      const screen = await terminal.see(answer === "" ? /\[y\/N\]/ : /\[y\/N\][\s\S]*\[y\/N\]/);
      expect(screen).toContain('+ set the variable A="\\u001b[2K\\r  nothing"');
      await terminal.type(`${answer}\n`);
      await terminal.see(new RegExp(`code ${code} ${answer || "no"}`));
    }
    expect(JSON.parse((await cli.run(["trust", "--list", "--json"])).text)).toMatchObject([
      { path: join(folder, "agents/a.prompt"), state: "trusted" },
    ]);
  });
});

test("a sub-agent of the folder must be trusted, and a resumed run keeps the old one", {
  timeout: 90_000,
}, async () => {
  const folder = await cli.folder();
  const lead = agent("agents: [helper]");
  put(folder, "agents/lead.prompt", lead);
  put(folder, "agents/helper.prompt", agent('permissions: { "bash:git push --force*": allow }'));
  const model = await cli.script({
    turns: [{ calls: [{ tool: "agent", arguments: { agent: "helper", task: "help" } }] }, { say: "Done." }],
    agents: { helper: [{ calls: [{ tool: "bash", arguments: { command: "git push --force || echo pushed" } }] }, { say: "Helped." }] },
  });
  const refused = await cli.run(["run", "lead", "x", "--model", model], { cwd: folder });
  expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining("agents/helper.prompt requests rights")]);
  put(folder, "agents/helper.prompt", agent("description: harmless"));
  // The process dies before the sub-agent starts, and then the file requests other rights.
  const env = { CAISSON_CRASH_AT: "run.created:after" };
  expect((await cli.run(["run", "lead", "x", "--model", model, "--session", "lead"], { cwd: folder, env })).code).not.toBe(0);
  put(folder, "agents/helper.prompt", agent('permissions: { "bash:git push --force*": allow }'));
  // The next station resumes the run without a command.
  const resumed = await cli.run([stationMode === "none" ? "resume" : "attach", "--json"], { cwd: folder });
  expect([resumed.code, resumed.text]).toEqual([0, expect.stringContaining("Helped.")]);
  const child = /"details":\{"run":"(run_[a-z2-7]{12})"/.exec(resumed.text)?.[1] ?? "";
  const events = await cli.events(child);
  expect(events.find(({ type }) => type === "tool.ended")).toMatchObject({ data: { outcome: "denied" } });
});
