// biome-ignore-all lint/suspicious/noTemplateCurlyInString: expressions of workflows are written so.
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import type { Going } from "../support/runs-cli.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const long = { timeout: 600_000 };
const patience = () => AbortSignal.timeout(400_000);

interface Served {
  going: Going;
  client: Client;
}

async function serve(home: string, env: Record<string, string> = {}): Promise<Served> {
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home, env });
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

async function newHome(name: string): Promise<string> {
  const home = join(cli.base(), name);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci" }));
  return home;
}

async function down(served: Served, home: string): Promise<void> {
  await cli.run(["down"], { home });
  await served.going.ended;
  expect(cli.sandboxes(home)).toEqual([]);
}

/** A scripted model that runs the command of each task, which it finds by the task's text, and finishes. */
const script = (commands: Readonly<Record<string, string>>) =>
  cli.script({
    tasks: Object.entries(commands).map(([task, command]) => ({
      contains: [`${task}.`],
      turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }],
    })),
    turns: [{ say: "I was not told what to do." }],
  });

async function begin(home: string, definition: object, args: readonly string[]): Promise<string> {
  const folder = await cli.folder({ "workflow.json": JSON.stringify(definition) });
  const { code, text, stderr } = await cli.run(["workflow", "run", join(folder, "workflow.json"), ...args, "--detach"], { home });
  expect([code, stderr]).toEqual([0, ""]);
  return text.trim();
}

const agent = (name: string, task: string, more: object = {}) => ({ name, kind: "agent", task: `${task}.`, timeout: "1h", ...more });
const sh = (name: string, command: string, more: object = {}) => ({ name, kind: "command", argv: ["sh", "-c", command], ...more });
const story = (text: string) => `The story\n\n${text}\n\nThe end\n`;

describe("a workflow's workspaces", () => {
  test("merge agents' branches for later steps, and repeat nothing after a kill", long, async () => {
    const home = await newHome("home-branches");
    const folder = await cli.folder({ "a.txt": "a\n", "b.txt": "b\n" });
    const model = await script({
      "Change a": "echo left > a.txt",
      "Change b": "echo right > b.txt",
      "Go on": "cat count >> b.txt; cat b.txt",
    });
    const test = "echo ran >> count; cat a.txt b.txt; echo begun > begun; until [ -e go ]; do sleep 0.1; done; seq 50000 > big.txt";
    const definition = {
      name: "branches",
      data: { note: "for all" },
      steps: [
        {
          name: "both",
          kind: "parallel",
          branches: {
            left: [agent("one", "Change a", { workspace: "own" })],
            right: [agent("two", "Change b", { workspace: "own" })],
          },
        },
        { name: "together", kind: "merge", of: ["one", "two"], conflicts: "stop" },
        sh("check", test, { workspace: { from: "together" }, artifacts: { numbers: "big.txt" } }),
        agent("more", "Go on", { workspace: { fork: "together" } }),
        sh("last", "cat b.txt; wc -l < in/numbers.txt", {
          workspace: { from: "more" },
          files: { "in/numbers.txt": "${steps.check.output.artifacts.numbers}" },
        }),
      ],
      output: {
        seen: "${steps.check.output.stdout}",
        last: "${steps.last.output.stdout}",
        bytes: "${steps.check.output.artifacts.numbers.bytes}",
        session: "${steps.last.output.session}",
      },
    };
    let served = await serve(home);
    try {
      const id = await begin(home, definition, ["--workspace", folder, "--model", model]);
      const inside = async () =>
        (await served.client.sandboxes.list({})).sandboxes.find(({ labels }) => labels["caisson.driven"] === `workflow/${id}`)?.id ?? "";
      await expect.poll(inside, { timeout: 300_000 }).not.toBe("");
      const sandbox = await inside();
      const readMarker = async () => (await cli.run(["exec", "--sandbox", sandbox, "--", "cat", "/workspace/begun"], { home })).text;
      await expect.poll(readMarker, { timeout: 120_000, interval: 300 }).toBe("begun\n");
      served.going.child.kill("SIGKILL");
      await served.going.ended;
      const go = await cli.run(["exec", "--sandbox", sandbox, "--", "touch", "/workspace/go"], { home });
      expect([go.code, go.stderr]).toEqual([0, ""]);
      served = await serve(home);
      const ended = await served.client.workflows.wait(id, { signal: patience() });
      expect([ended.finish, ended.text]).toEqual(["completed", null]);
      expect(ended.output).toMatchObject({ seen: "left\nright\n", last: "right\nran\n50000\n", bytes: 288894 });
      const { session } = ended.output as { session: string };
      expect((await cli.run(["apply", session], { home, cwd: folder })).code).toBe(0);
      expect(await readFile(join(folder, "b.txt"), "utf8")).toBe("right\nran\n");
      const task = (await served.client.runs.list({})).runs.find(({ title }) => title.startsWith("Go on"));
      let taskText = "";
      for await (const event of served.client.runs.events(task?.run ?? "", { signal: patience() }))
        if (event.type === "run.created") taskText = event.data.task;
      for (const word of ["for all", "numbers", "sha256", "together", "both", `workflow/${id}`]) expect(taskText).toContain(word);
    } finally {
      await down(served, home);
    }
  });

  test("go with the workflow if it says so, on success and on failure", long, async () => {
    const home = await newHome("home-cleanup");
    const folder = await cli.folder({ "a.txt": "a\n" });
    const model = await script({ "Change a": "echo left > a.txt", "Change b": "echo b > b.txt", "Go on": "echo more >> a.txt" });
    const definition = (cleanup: string | null, more: object[] = []) => ({
      name: "tidy",
      ...(cleanup !== null && { cleanup }),
      steps: [
        agent("first", "Go on"),
        agent("one", "Change a", { workspace: "own" }),
        agent("two", "Change b", { workspace: "own", cleanup: "never" }),
        { name: "together", kind: "merge", of: ["one", "two"], conflicts: "stop" },
        sh("check", "cat a.txt b.txt", { workspace: { from: "together" } }),
        agent("fork", "Go on", { workspace: { fork: "together" } }),
        ...more,
      ],
    });
    const served = await serve(home);
    const finish = async (...[given, args = []]: [object, string[]?]) => {
      const id = await begin(home, given, ["--workspace", folder, "--model", model, ...args]);
      const { finish: how, steps } = await served.client.workflows.wait(id, { signal: patience() });
      const two = (steps.find(({ path }) => path === "two")?.output as { session: string } | undefined)?.session ?? "none";
      const { sessions } = await served.client.sessions.list();
      const kept = sessions.map(({ id }) => id);
      for (const session of kept) await served.client.sessions.discard(session);
      return { how, two: kept.includes(two), count: kept.length };
    };
    const failing = [{ name: "stop", kind: "fail", text: "not today" }];
    try {
      expect(await finish(definition(null))).toEqual({ how: "completed", two: true, count: 5 });
      expect(await finish(definition("always"))).toEqual({ how: "completed", two: true, count: 1 });
      expect(await finish(definition("on_success", failing))).toEqual({ how: "failed", two: true, count: 5 });
      expect(await finish(definition("never", failing), ["--cleanup", "always"])).toEqual({ how: "failed", two: true, count: 1 });
    } finally {
      await down(served, home);
    }
  });

  test.each(["session.cleanup:before#1", "session.removed:before#1", "workflow.cleaned:before#1"])(
    "go with the workflow even if the station is killed: %s",
    long,
    async (point) => {
      const home = await newHome(`home-${point.replaceAll(/[^a-z]/g, "-")}`);
      const folder = await cli.folder({ "a.txt": "a\n" });
      const model = await script({ "Change a": "echo left > a.txt", "Go on": "echo more >> a.txt" });
      const steps = [agent("first", "Go on"), agent("one", "Change a", { workspace: "own" })];
      let served = await serve(home, { CAISSON_CRASH_AT: point });
      try {
        const id = await begin(home, { name: "killed", cleanup: "always", steps }, ["--workspace", folder, "--model", model]);
        expect((await served.going.ended).signal).toBe("SIGKILL");
        served = await serve(home);
        expect((await served.client.workflows.wait(id, { signal: patience() })).finish).toBe("completed");
        expect((await served.client.sessions.list()).sessions).toEqual([]);
      } finally {
        await down(served, home);
      }
    },
  );

  test("wait for a person if there is a conflict, and continue with the choice", long, async () => {
    const home = await newHome("home-conflict");
    const folder = await cli.folder({ "a.txt": story("is short") });
    const model = await script({ "Make it long": "sed -i s/short/long/ a.txt", "Make it good": "sed -i s/short/good/ a.txt" });
    const served = await serve(home);
    try {
      const definition = {
        name: "conflict",
        steps: [
          { name: "each", kind: "foreach", in: "['long', 'good']", steps: [agent("write", "Make it ${item}", { workspace: "own" })] },
          { name: "together", kind: "merge", of: ["write"], conflicts: "ask" },
          sh("see", "cat a.txt", { workspace: { from: "together" } }),
        ],
        output: "${steps.see.output.stdout}",
      };
      const id = await begin(home, definition, ["--workspace", folder, "--model", model]);
      const waiting = async () => (await served.client.merges.list({ needsPerson: true })).items[0]?.id ?? "";
      await expect.poll(waiting, { timeout: 300_000, interval: 200 }).not.toBe("");
      const resolved = await cli.run(["merge", "resume", await waiting(), "--take", "a.txt=theirs"], { home });
      expect([resolved.code, resolved.stderr]).toEqual([0, expect.any(String)]);
      const ended = await served.client.workflows.wait(id, { signal: patience() });
      expect(ended).toMatchObject({ finish: "completed", output: expect.stringMatching(/^The story\n\nis (long|good)\n\nThe end\n$/) });
      const stopped = {
        ...definition,
        name: "stopped",
        steps: definition.steps.map((step) => ({ ...step, ...("of" in step && { conflicts: "stop" }) })),
      };
      const failed = await begin(home, stopped, ["--workspace", folder, "--model", model]);
      const view = await served.client.workflows.wait(failed, { signal: patience() });
      expect(view).toMatchObject({ finish: "failed", text: expect.stringContaining("conflicts with the sessions merged before it") });
      expect(view.steps.find(({ path }) => path === "together")).toMatchObject({ status: "failed", error: { code: "conflict" } });
    } finally {
      await down(served, home);
    }
  });

  test("show earlier changes to later agents and commands when shared", long, async () => {
    const home = await newHome("home-shared");
    const folder = await cli.folder({ "a.txt": "a\n" });
    const model = await script({ First: "echo first >> a.txt", Second: "echo second >> a.txt" });
    const served = await serve(home);
    try {
      const definition = {
        name: "shared",
        steps: [
          agent("one", "First"),
          sh("middle", "echo middle >> a.txt", { workspace: { from: "one" } }),
          agent("two", "Second"),
          sh("see", "cat a.txt", { workspace: { from: "middle" } }),
          sh("apart", "cat a.txt"),
        ],
        output: ["${steps.see.output.stdout}", "${steps.apart.output.stdout}"],
      };
      const id = await begin(home, definition, ["--workspace", folder, "--model", model]);
      const ended = await served.client.workflows.wait(id, { signal: patience() });
      expect(ended).toMatchObject({ finish: "completed", text: null, output: ["a\nfirst\nmiddle\nsecond\n", "a\n"] });
    } finally {
      await down(served, home);
    }
  });
});
