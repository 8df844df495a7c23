import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Reply, startModelServer } from "../support/model-server.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });
const TASK = "make the test pass";

async function repository(): Promise<string> {
  const folder = await cli.folder({
    "sum.sh": "echo $(($1 - $2))\n",
    "test.sh": 'test "$(sh sum.sh 2 3)" = 5 && echo passed\n',
    "AGENTS.md": "Never touch test.sh.\n",
  });
  const git = (...argv: string[]) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...argv], { cwd: folder });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "begin");
  return folder;
}

describe("a run with a model behind HTTP", () => {
  test("works on a git repository, and sends the task with every request", { timeout: 120_000 }, async () => {
    const replies: Reply[] = [
      { say: "I run the test first.", calls: [call("bash", { command: "sh test.sh" }), call("read", { path: "sum.sh" })] },
      { calls: [call("edit", { path: "sum.sh", old: "-", new: "+", old_string: "-", new_string: "+" })] },
      { calls: [call("bash", { command: "sed -i s/-/+/ sum.sh; sh test.sh; git status --short" })] },
      { say: "The sign was wrong; the test passes now." },
    ];
    await using server = await startModelServer((_, number) => replies[number] ?? { status: 500 });
    const folder = await repository();
    const done = await cli.run(["run", TASK, "--repo", folder, "--model", "compatible/test-model", "--json"], {
      env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "key-of-the-test" },
    });
    expect(done.code, done.stderr + done.text.slice(-800)).toBe(0);
    expect(done.events.at(-1)).toMatchObject({ type: "run.ended", data: { reason: "done", steps: 4, usage: { inputTokens: 400 } } });
    expect(server.requests).toHaveLength(4);
    for (const request of server.requests) {
      expect(request).toMatchObject({ model: "test-model", stream: true });
      expect(request.messages[0]).toMatchObject({ role: "system", content: expect.stringContaining("Never touch test.sh.") });
      expect(request.messages[1]).toMatchObject({ role: "user" });
      expect(JSON.stringify(request.messages[1])).toContain(TASK);
    }
    const tools = new Map(server.requests[0]?.tools?.map((tool) => [tool.function.name, tool.function]));
    expect([...tools.keys()]).toEqual(expect.arrayContaining(["bash", "read", "write", "edit", "apply_patch", "glob", "grep"]));
    expect(tools.get("bash")).toMatchObject({
      description: expect.stringContaining("30000"),
      parameters: { type: "object", required: ["command"], properties: { command: { type: "string" } } },
    });
    // Each result has the id of its call, in the order of the calls.
    const second = server.requests[1]?.messages.slice(2) ?? [];
    expect(second.map((message) => [message.role, message.tool_call_id ?? message.tool_calls?.map((each) => each.id)])).toEqual([
      ["assistant", ["call_0", "call_1"]],
      ["tool", "call_0"],
      ["tool", "call_1"],
    ]);
    expect(JSON.stringify(second[1])).toContain("Exit code 1");
    expect(JSON.stringify(second[2])).toContain("echo $(($1 - $2))");
    expect(JSON.stringify(server.requests[3]?.messages.at(-1))).toContain("passed");
    expect(readFileSync(join(folder, "sum.sh"), "utf8")).toContain("-");
    const id = done.events[0]?.type === "run.created" ? done.events[0].data.run : "";
    const diff = await cli.run(["diff", id]);
    expect(diff.text).toMatch(/-echo \$\(\(\$1 - \$2\)\)\n\+echo \$\(\(\$1 \+ \$2\)\)/);
    expect((await cli.run(["apply", id])).code).toBe(0);
    expect(execFileSync("sh", ["test.sh"], { cwd: folder, encoding: "utf8" })).toBe("passed\n");
    // The log does not contain the key.
    expect(readFileSync(join(cli.home(), "log.db"), "latin1")).not.toContain("key-of-the-test");
  });

  test("continues after its end with its whole conversation and its files", async () => {
    const replies: Reply[] = [
      { calls: [call("bash", { command: "echo one > kept.txt" })] },
      { say: "Kept." },
      { calls: [call("bash", { command: "cat kept.txt" })] },
      { say: "It says one." },
      { say: "You are welcome." },
    ];
    await using server = await startModelServer((_, number) => replies[number] ?? { status: 500 });
    const options = { cwd: await cli.folder(), env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "key" } };
    const first = await cli.run(["run", TASK, "--model", "compatible/test-model", "--json"], options);
    expect(first.code, first.stderr).toBe(0);
    const id = first.events[0]?.type === "run.created" ? first.events[0].data.run : "";
    const sent = await cli.run(["send", "--wait", id, "what did you write?"], options);
    expect(sent, sent.stderr).toMatchObject({ code: 0, text: expect.stringContaining("first seen by model call m3") });
    expect(sent.stderr).toContain(`${id} had ended (done); it continues in the background`);
    expect((await cli.run(["attach", id], options)).code).toBe(0);
    expect((await cli.run(["run", "--continue", "thank you"], options)).code).toBe(0);
    const [, second, third, fourth, fifth] = server.requests.map(({ messages }) => messages);
    expect(third?.slice(0, second?.length)).toEqual(second);
    expect(JSON.stringify(third?.slice(second?.length))).toMatch(/Kept\.[\s\S]*This run had ended \(done\)[\s\S]*what did you write\?/);
    expect(JSON.stringify(fourth?.at(-1))).toContain("one");
    expect(fifth?.slice(0, fourth?.length)).toEqual(fourth);
    expect(JSON.stringify(fifth?.at(-1))).toContain("thank you");
    expect(server.requests).toHaveLength(5);
    expect((await cli.run(["diff", "--stat"], options)).text).toContain("kept.txt");
  });

  test("tells the model about malformed arguments, and ends at a limit without a price", async () => {
    const replies: Reply[] = [
      { calls: [{ name: "bash", arguments: '{"command": nonsense' }, call("bash", { cmd: 1 }), call("fly", {})] },
      { say: "I see." },
    ];
    await using server = await startModelServer((_, number) => replies[number] ?? { calls: [call("bash", { command: "true" })] });
    const done = await cli.run(["run", TASK, "--no-workspace", "--model", "compatible/x", "--json"], {
      env: { OPENAI_BASE_URL: server.url },
    });
    expect(done.code, done.text.slice(-800)).toBe(0);
    const messages = JSON.stringify(server.requests[1]?.messages);
    for (const words of ["are not valid JSON", "are invalid", "There is no tool"]) expect(messages).toContain(words);
    const bound = await cli.run(["run", TASK, "--no-workspace", "--model", "compatible/x", "--json", "--max-cost", "1"], {
      env: { OPENAI_BASE_URL: server.url },
    });
    expect(bound.code).toBe(1);
    expect(bound.events.at(-1)).toMatchObject({ data: { reason: "budget" } });
  });
});

describe("an unusable model", () => {
  const run = (model: string, env: Record<string, string | undefined> = {}) =>
    cli.run(["run", TASK, "--no-workspace", "--model", model], {
      env: { OPENAI_API_KEY: undefined, ANTHROPIC_API_KEY: undefined, ...env },
    });

  test("is refused before a run is created, with a hint", async () => {
    const key = await run("anthropic/claude-x");
    expect(key).toMatchObject({ code: 125, stderr: expect.stringContaining("ANTHROPIC_API_KEY") });
    const form = await run("gpt");
    expect(form).toMatchObject({ code: 125, stderr: expect.stringMatching(/is not a model[\s\S]*anthropic, openai, google, compatible/) });
    const address = await run("compatible/x", { OPENAI_BASE_URL: undefined });
    expect(address).toMatchObject({ code: 125, stderr: expect.stringContaining("OPENAI_BASE_URL") });
    const none = await cli.run(["run", TASK, "--no-workspace"], { env: { CAISSON_MODEL: undefined } });
    expect(none).toMatchObject({ code: 125, stderr: expect.stringMatching(/no model was chosen[\s\S]*--model/) });
    const script = await run("scripted:/nowhere/at-all.yaml");
    expect(script).toMatchObject({ code: 125, stderr: expect.stringContaining("/nowhere/at-all.yaml") });
  });

  test("is retried after 503, 429 and a broken response, but not after 401", async () => {
    await using closed = await startModelServer(() => ({ status: 401, body: '{"error":{"message":"bad key"}}' }));
    const refused = await run("compatible/x", { OPENAI_BASE_URL: closed.url });
    expect(refused.code).toBe(1);
    expect(refused.text).toContain("Check that the provider's key is set and valid");
    expect(closed.requests).toHaveLength(1);
    const brokenOff = 'data: {"id":"x","choices":[{"index":0,"delta":{"content":"Her"}}]}\n\n';
    const replies: Reply[] = [{ status: 503 }, { status: 429, headers: { "retry-after": "1" } }, { raw: brokenOff }, { say: "Here." }];
    await using flaky = await startModelServer((_, number) => replies[number] ?? { status: 500 });
    const done = await run("compatible/x", { OPENAI_BASE_URL: flaky.url });
    expect(done.code, done.text).toBe(0);
    expect(flaky.requests).toHaveLength(4);
  });

  test("is retried after a cut connection, and the message says so", async () => {
    const piece = 'data: {"id":"x","choices":[{"index":0,"delta":{"content":"Her"}}]}\n\n';
    const replies: Reply[] = [{ cutAfter: ":\n" }, { cutAfter: piece.slice(0, 20) }, { cutAfter: piece }, { say: "Here." }];
    await using cutting = await startModelServer((_, number) => replies[number] ?? { status: 500 });
    const done = await run("compatible/x", { OPENAI_BASE_URL: cutting.url });
    expect(done.code, done.text).toBe(0);
    expect(done.text.match(/compatible\/x stopped in the middle of its answer \(retrying in/g)).toHaveLength(3);
    expect(done.text).not.toMatch(/answered 200|successful response/);
  });

  test("ends the run with a clear message if it stalls, garbles or answers nothing", async () => {
    const home = join(cli.base(), "impatient");
    await mkdir(home);
    await writeFile(join(home, "config.json"), JSON.stringify({ models: { stallMs: 2_000 } }));
    const noRetry = join(
      await cli.folder({ "once.prompt": "---\nharness_config:\n  retries: 0\n  on_outage: stop\n---\nYou try once.\n" }),
      "once.prompt",
    );
    const once = (url: string, options: { home?: string } = {}) =>
      cli.run(["run", noRetry, TASK, "--no-workspace", "--model", "compatible/x"], { ...options, env: { OPENAI_BASE_URL: url } });
    await using stalling = await startModelServer(() => ({ stall: true }));
    const stalled = await once(stalling.url, { home });
    expect(stalled.code, stalled.text).toBe(1);
    expect(stalled.text).toContain("sent nothing for 2000 ms");
    await using babbling = await startModelServer(() => ({ raw: "data: {not json\n\nwhat is this\n\n" }));
    const garbled = await once(babbling.url);
    expect(garbled.code, garbled.text).toBe(1);
    expect(garbled.text).toMatch(/an invalid answer|did not finish its answer/);
    await using mute = await startModelServer(() => ({}));
    const empty = await once(mute.url);
    expect(empty.code, empty.text).toBe(1);
    expect(empty.text).toContain("several empty answers");
    expect(mute.requests.length).toBeGreaterThan(1);
  });
});
