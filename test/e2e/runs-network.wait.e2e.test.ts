import { execFileSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { startModelServer } from "../support/model-server.ts";
import { type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";
import { isThroughStation } from "../support/station-modes.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const bash = (command: string) => ({ tool: "bash", arguments: { command } });

async function start(script: Script, ...more: string[]) {
  const going = cli.start(["run", "the task", "--no-workspace", "--model", await cli.script(script), "--json", ...more]);
  const created = await going.event("run.created");
  return { going, id: created.data.run };
}

async function startPages(): Promise<{ port: number; asked: string[] } & AsyncDisposable> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.setHeader("content-type", "text/html");
    response.end("<h1>The manual</h1><p>Turn it <b>on</b>.</p>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked: requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const of = <Type extends LoggedEvent["type"]>(events: readonly LoggedEvent[], type: Type) =>
  events.filter((event) => event.type === type) as Extract<LoggedEvent, { type: Type }>[];

describe("an agent and the network", () => {
  test("a denial is in the tool's result and the log, and a person can lift it", async () => {
    await using pages = await startPages();
    const page = `http://host.caisson:${pages.port}/manual`;
    const { going, id } = await start(
      {
        turns: [
          { calls: [bash("curl -sS -m 20 https://docs.example.org/ || echo failed")] },
          {
            expect: { news: ["failed", "[network]", "docs.example.org:443", "request_network"] },
            calls: [{ tool: "web_fetch", arguments: { url: "https://docs.example.org/" } }],
          },
          {
            expect: { news: ["docs.example.org", "request_network"] },
            calls: [{ tool: "request_network", arguments: { host: "docs.example.org", reason: "to read the manual" } }],
          },
          { expect: { news: ["It is allowed", "docs.example.org"] }, calls: [{ tool: "web_fetch", arguments: { url: page } }] },
          {
            expect: { news: ["200", "# The manual", "Turn it on."] },
            calls: [bash(`curl -sS -m 20 ${page} | grep -c manual`)],
          },
          { say: "Done." },
        ],
      },
      "--on-ask",
      "wait",
      "--network",
      `private host.caisson:${pages.port}`,
    );
    const questionEvent = await going.event("permission.asked");
    expect(questionEvent.data).toMatchObject({ text: expect.stringContaining("docs.example.org (to read the manual)"), pattern: null });
    expect((await cli.run(["net", "show", id])).text).toContain(`private host.caisson:${pages.port}`);
    await cli.run(["answer", id, "always"]);
    const done = await going.ended;
    expect(done.code, done.text.slice(-2000)).toBe(0);
    expect(pages.asked).toEqual(["GET /manual", "GET /manual"]);
    const events = await cli.events(id);
    expect(of(events, "network.denied").map(({ data }) => [data.host, data.port, data.reason, data.via])).toEqual([
      ["docs.example.org", 443, "host_not_allowed", "connect"],
      ["docs.example.org", 443, "host_not_allowed", "fetch"],
    ]);
    expect(of(events, "network.changed")).toMatchObject([
      { data: { by: expect.stringContaining("agent"), policy: { rules: [{}, { host: "docs.example.org" }] } } },
    ]);
    expect(of(events, "network.closed").map(({ data }) => data.host)).toContain("host.caisson");
    // The sandbox no longer exists, but the run's log does.
    const log = await cli.run(["net", "log", id, "--denied"]);
    expect(log.text.trim().split("\n")).toHaveLength(2);
    expect(log.text).toContain("docs.example.org:443");
  });

  test("a second process can allow more during the run, and new ports are reported", async () => {
    await using pages = await startPages();
    const { going, id } = await start({
      turns: [
        { calls: [{ tool: "bash", arguments: { command: "python3 -m http.server 8123", background: true } }] },
        {
          calls: [
            bash(
              `until HTTP_PROXY= http_proxy=http://127.0.0.1:19080 curl -sSf -m 5 http://host.caisson:${pages.port}/late; do sleep 0.1; done`,
            ),
          ],
        },
        { say: "Done." },
      ],
    });
    const opened = await going.event("port.opened");
    expect(opened.data.port).toBe(8123);
    // Until now the run had no network, and no process served one.
    expect((await cli.run(["net", "allow", id, `private host.caisson:${pages.port}`])).code).toBe(0);
    const done = await going.ended;
    expect(done.code, done.text.slice(-2000)).toBe(0);
    expect(pages.asked).toEqual(["GET /late"]);
  });

  test("models behind the gateway need no key inside, and count in the budget", async () => {
    await using server = await startModelServer(() => ({ say: "Bonjour.", usage: { prompt: 700, completion: 300 } }));
    const home = join(cli.base(), "gateway-home");
    await mkdir(home, { mode: 0o700 });
    await writeFile(join(home, "config.json"), JSON.stringify({ network: { gateway: { openai: server.url } } }));
    const key = "sk-canary-9f3c1e77d2b84a6c";
    const ask = `curl -sS -m 30 "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '{"model":"gpt-5-mini","stream":true,"messages":[{"role":"user","content":"Say hello in French."}]}'`;
    const script = await cli.script({
      turns: [{ calls: [bash(`env | grep ^OPENAI_API_KEY; ${ask}; ${ask}`)], usage: { inputTokens: 0, outputTokens: 0 } }],
    });
    const options = { home, env: { OPENAI_API_KEY: key } };
    const ended = await cli.run(
      [
        "run",
        "the task",
        "--no-workspace",
        "--model",
        script,
        "--json",
        "--gateway",
        "openai",
        "--max-tokens",
        "900",
        "--on-budget",
        "stop",
      ],
      options,
    );
    const called = of(ended.events, "gateway.called");
    expect(called[0]?.data, ended.text.slice(-1500)).toMatchObject({
      wire: "openai",
      model: "gpt-5-mini",
      status: 200,
      usage: { inputTokens: 700, outputTokens: 300 },
      asked: expect.stringContaining("Say hello in French."),
      answered: "Bonjour.",
      error: null,
    });
    const last = ended.events.at(-1);
    expect(last).toMatchObject({ type: "run.ended", data: { usage: { inputTokens: expect.any(Number) } } });
    expect(last?.type === "run.ended" && last.data.usage.inputTokens).toBeGreaterThanOrEqual(700);
    // The second call would exceed the run's budget: the gateway refused it, and the run ended for the same reason.
    expect(server.requests).toHaveLength(1);
    expect(of(ended.events, "tool.ended")[0]?.data.text).toMatch(/^OPENAI_API_KEY=caisson-gateway\n.*Bonjour\..*insufficient_quota/s);
    expect(last).toMatchObject({ data: { reason: "budget" } });
    const found = execFileSync("bash", ["-c", `grep -rlaF -- '${key}' '${home}' || true`], { encoding: "utf8" });
    expect(found, "files with the key").toBe("");
    expect(ended.text).not.toContain(key);
  });

  test("a network that fails at `resume` costs neither the sandbox nor the command", async ({ skip }) => {
    skip(isThroughStation, "the station drives the run, so there is nothing to resume when the command is killed");
    const { going, id } = await start(
      { turns: [{ calls: [bash("echo begun; sleep 6; echo ended")] }, { say: "Done." }] },
      "--network",
      "example.org",
    );
    await going.event("tool.streamed");
    going.child.kill("SIGKILL");
    await going.ended;
    const before = cli.sandboxes();
    const config = join(cli.home(), "config.json");
    await writeFile(config, JSON.stringify({ network: { caFiles: ["/no/such/file.pem"] } }));
    const failed = await cli.run(["resume", id, "--json"]);
    expect([failed.code, failed.text]).toEqual([125, expect.stringContaining("/no/such/file.pem")]);
    expect(cli.sandboxes()).toEqual(before);
    await rm(config);
    const resumed = await cli.run(["resume", id, "--json"]);
    expect(resumed.code, resumed.text.slice(-1000)).toBe(0);
    expect(of(await cli.events(id), "tool.ended").map(({ data }) => [data.outcome, data.text])).toEqual([["ok", "begun\nended"]]);
  });
});
