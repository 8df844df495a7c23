import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import type { Going } from "../support/runs-cli.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const example = join(import.meta.dirname, "..", "..", "examples", "workflow");
const long = { timeout: 600_000 };

interface Served {
  going: Going;
  client: Client;
}

async function serve(home: string): Promise<Served> {
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home });
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

async function newHome(name: string): Promise<string> {
  const home = join(cli.base(), name);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci" }));
  return home;
}

async function killed({ going }: Served): Promise<void> {
  going.child.kill("SIGKILL");
  await going.ended;
}

async function down(served: Served, home: string): Promise<void> {
  await cli.run(["down"], { home });
  await served.going.ended;
  expect(cli.sandboxes(home)).toEqual([]);
}

async function definition(value: object): Promise<string> {
  return join(await cli.folder({ "workflow.json": JSON.stringify(value) }), "workflow.json");
}

/** Starts a workflow that the station continues in the background. */
async function begin(home: string, args: readonly string[]): Promise<string> {
  const { code, text, stderr } = await cli.run(["workflow", "run", ...args, "--detach"], { home });
  expect([code, stderr]).toEqual([0, ""]);
  return text.trim();
}

describe("a workflow", () => {
  test("of an agent, commands and an approval continues in a restarted station", long, async () => {
    const home = await newHome("home-example");
    let served = await serve(home);
    try {
      const model = `scripted:${join(example, "script.yaml")}`;
      const id = await begin(home, [join(example, "review.yaml"), "--input", "who=Ana", "--model", model]);
      const waiting = await served.client.workflows.wait(id, { orPerson: true, signal: AbortSignal.timeout(300_000) });
      expect(waiting.steps.map(({ path, status }) => `${path} ${status}`)).toContain("write completed");
      await killed(served);
      served = await serve(home);
      const waitingWorkflows = JSON.parse((await cli.run(["workflow", "ls", "--waiting", "--json"], { home })).text);
      expect(waitingWorkflows).toMatchObject([{ id }]);
      const inbox = await cli.run(["inbox"], { home });
      expect([inbox.code, inbox.text]).toEqual([0, expect.stringContaining(`caisson workflow approve ${id}`)]);
      expect((await cli.run(["workflow", "approve", id, "--text", "well said"], { home })).code).toBe(0);
      const ended = await served.client.workflows.wait(id, { signal: AbortSignal.timeout(300_000) });
      expect(ended).toMatchObject({ finish: "completed", output: { greeting: "Good morning from a scripted model." } });
      expect((ended.output as { summary: string }).summary).toContain("Ana was greeted after 2 checks");
      expect((await served.client.runs.list({})).runs).toHaveLength(1);
      const result = await cli.run(["workflow", "show", id], { home });
      expect([result.code, result.text]).toEqual([0, expect.stringContaining("write")]);
    } finally {
      await down(served, home);
    }
  });

  test("gets the outcome of a command that ended without a station, and runs it once", long, async () => {
    const home = await newHome("home-command");
    const count = "echo ran >> count; echo begun; until [ -e go ]; do sleep 0.1; done; cat count";
    const file = await definition({
      name: "counted",
      steps: [{ name: "count", kind: "command", argv: ["sh", "-c", count] }],
      output: { said: `\${steps.count.output.stdout}` },
    });
    let served = await serve(home);
    try {
      const id = await begin(home, [file]);
      const sandbox = async () => (await served.client.sandboxes.list({})).sandboxes.find(({ state }) => state === "running")?.id;
      await expect.poll(sandbox, { timeout: 120_000 }).toBeDefined();
      const inside = (await sandbox()) ?? "";
      const readCount = async () => (await cli.run(["exec", "--sandbox", inside, "--", "cat", "/workspace/count"], { home })).text;
      await expect.poll(readCount, { timeout: 120_000, interval: 200 }).toBe("ran\n");
      await killed(served);
      const go = await cli.run(["exec", "--sandbox", inside, "--", "touch", "/workspace/go"], { home });
      expect([go.code, go.stderr]).toEqual([0, ""]);
      served = await serve(home);
      const ended = await served.client.workflows.wait(id, { signal: AbortSignal.timeout(300_000) });
      expect(ended).toMatchObject({ finish: "completed", output: { said: "begun\nran\n" } });
    } finally {
      await down(served, home);
    }
  });

  test("on a schedule starts at its times until it is cancelled", long, async () => {
    const home = await newHome("home-schedule");
    const file = await definition({ name: "tick", steps: [{ name: "say", kind: "set", data: { said: "tick" } }] });
    const served = await serve(home);
    try {
      // Every second, with croner's sixth field.
      const id = await begin(home, [file, "--cron", "* * * * * *"]);
      const started = async () =>
        (await served.client.workflows.list({ parent: `workflow/${id}` })).items.filter(({ finish }) => finish === "completed").length;
      await expect.poll(started, { timeout: 120_000 }).toBeGreaterThanOrEqual(2);
      expect((await cli.run(["workflow", "show", id], { home })).text).toContain("At * * * * * *");
      expect((await cli.run(["workflow", "cancel", id], { home })).code).toBe(0);
      const ended = await served.client.workflows.wait(id, { signal: AbortSignal.timeout(120_000) });
      expect(ended).toMatchObject({ finish: "cancelled" });
      const last = (await served.client.workflows.list({ parent: `workflow/${id}` })).items.length;
      expect(last).toBe(ended.schedule?.started);
    } finally {
      await down(served, home);
    }
  });

  test("that is cancelled ends its agent's run and sandbox", long, async () => {
    const home = await newHome("home-cancel");
    const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command: "sleep 600" } }] }, { say: "Done." }] });
    const file = await definition({ name: "slow", steps: [{ name: "wait", kind: "agent", task: "Wait.", timeout: "1h" }] });
    const served = await serve(home);
    try {
      const id = await begin(home, [file, "--model", model]);
      const runs = async () => (await served.client.runs.list({})).runs;
      await expect.poll(async () => (await runs()).map(({ status }) => status), { timeout: 120_000 }).toEqual(["running"]);
      const [{ run } = { run: "" }] = await runs();
      for await (const { type } of served.client.runs.events(run, { signal: AbortSignal.timeout(120_000) }))
        if (type === "tool.started") break;
      expect((await cli.run(["workflow", "cancel", id], { home })).code).toBe(0);
      const ended = await served.client.workflows.wait(id, { signal: AbortSignal.timeout(300_000) });
      expect(ended).toMatchObject({ finish: "cancelled" });
      expect(await served.client.runs.get(run)).toMatchObject({ status: "ended", finish: "cancelled" });
    } finally {
      await down(served, home);
    }
  });

  test("without a station runs in its command, and retries from the failed step", long, async () => {
    const home = await newHome("home-alone");
    const folder = await cli.folder({ "a.txt": "here\n" });
    const file = await definition({
      name: "checked",
      steps: [
        { name: "first", kind: "command", argv: ["cat", "a.txt"] },
        { name: "second", kind: "command", argv: ["cat", "b.txt"] },
      ],
      output: { both: `\${steps.first.output.stdout + steps.second.output.stdout}` },
    });
    const failed = await cli.run(["workflow", "run", file, "--workspace", folder, "--json"], { home });
    expect(failed.code).toBe(1);
    const [{ id }] = JSON.parse((await cli.run(["workflow", "ls", "--all", "--json"], { home })).text) as [{ id: string }];
    await writeFile(join(folder, "b.txt"), "and there\n");
    const again = await cli.run(["workflow", "retry", id], { home });
    expect([again.code, again.stderr]).toEqual([0, expect.any(String)]);
    const workflow = JSON.parse((await cli.run(["workflow", "show", id, "--json"], { home })).text);
    expect(workflow).toMatchObject({ finish: "completed", output: { both: "here\nand there\n" } });
    expect(await readFile(join(folder, "a.txt"), "utf8")).toBe("here\n");
    expect(cli.sandboxes(home)).toEqual([]);
  });

  test("that is invalid is refused with the place and a hint, and does not start", async () => {
    const home = await newHome("home-bad");
    const file = await definition({ name: "bad", steps: [{ name: "a", kind: "command", argv: ["true"], wehn: "true" }] });
    const checked = await cli.run(["workflow", "validate", file], { home });
    expect([checked.code, checked.text]).toEqual([1, expect.stringContaining("wehn")]);
    const result = await cli.run(["workflow", "run", file], { home });
    expect([result.code, result.stderr]).toEqual([expect.any(Number), expect.stringContaining("wehn")]);
    expect(result.code).not.toBe(0);
    expect(JSON.parse((await cli.run(["workflow", "ls", "--all", "--json"], { home })).text)).toEqual([]);
  });
});
