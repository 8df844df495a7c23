import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";

const { run, home, base, sandboxes } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

describe("the agent and config commands", () => {
  beforeAll(async () => {
    await mkdir(join(base(), "agents"));
    await mkdir(home(), { recursive: true });
    await writeFile(
      join(base(), "agents", "writer.prompt"),
      "---\ndescription: Writes.\ninput:\n  schema:\n    language: string\n---\nWrite {{language}}.\n",
    );
    await writeFile(join(base(), "agents", "broken.prompt"), "---\nmodel: m\nharness_config:\n  max_step: 3\n  timeout: soon\n---\nX\n");
  });

  test("agent ls lists broken agents", async () => {
    const listed = await run(["agent", "ls"]);
    expect(listed.code).toBe(0);
    expect(listed.text).toMatch(/broken +broken, see caisson agent validate/);
    expect(listed.text).toMatch(/writer +Writes\./);
    expect(listed.text).toMatch(/coder /);
    const rows = JSON.parse((await run(["agent", "ls", "--json"])).text) as { name: string; error?: { code: string } }[];
    expect(rows.map((row) => row.name)).toEqual(["coder", "merger", "planner", "reviewer", "tester", "broken", "writer"]);
    expect(rows[5]?.error?.code).toBe("invalid");
  });

  test("agent show prints the agent as it would run, with its inputs", async () => {
    const result = await run(["agent", "show", "writer", "--json", "--input", "language=C"]);
    expect(JSON.parse(result.text)).toMatchObject({ name: "writer", system: "Write C.", harness: { maxSteps: 50 } });
    const missing = await run(["agent", "show", "writer"]);
    expect([missing.code, missing.stderr]).toEqual([125, expect.stringContaining("language is missing")]);
    expect((await run(["agent", "show", "missing"])).stderr).toContain(
      "Available agents: coder, merger, planner, reviewer, tester, broken, writer",
    );
  });

  test("agent validate reports every problem with its line and a suggestion", async () => {
    const result = await run(["agent", "validate", "agents/writer.prompt", "agents/broken.prompt", "agents/none.prompt"]);
    expect(result.code).toBe(1);
    expect(result.text).toContain("agents/writer.prompt: good\n");
    expect(result.text).toContain('agents/broken.prompt:4: harness_config: there is no setting "max_step"; did you mean "max_steps"?');
    expect(result.text).toContain("agents/broken.prompt:5: harness_config.timeout is not a duration");
    expect(result.text).toContain("agents/none.prompt cannot be read");
    const rows = JSON.parse((await run(["agent", "validate", "agents/broken.prompt", "--json"])).text);
    expect(rows).toMatchObject([{ error: { code: "invalid", details: { complaints: [{ line: 4 }, { line: 5 }] } } }]);
    expect((await run(["agent", "validate", "agents/writer.prompt"])).code).toBe(0);
  });

  test("config names the source of each value: option, variable, file or default", async () => {
    await writeFile(
      join(home(), "config.json"),
      JSON.stringify({
        runtime: "docker",
        image: "from-file",
        limits: { pids: 77 },
        models: { default: "a/b" },
        agent: { harness: { maxSteps: 9 } },
      }),
    );
    try {
      const env = { CAISSON_RUNTIME: "oci", CAISSON_IMAGE: "from-variable", CAISSON_MODEL: "" };
      const { text } = await run(["config", "--image", "from-option"], { env });
      const row = (name: string) =>
        text
          .split("\n")
          .find((line) => line.startsWith(`${name} `))
          ?.trim()
          .split(/\s{2,}/);
      expect(row("runtime")).toEqual(["runtime", "oci", "CAISSON_RUNTIME"]);
      expect(row("image")).toEqual(["image", "from-option", "--image"]);
      expect(row("limits.pids")).toEqual(["limits.pids", "77", join(home(), "config.json")]);
      expect(row("limits.cpus")).toEqual(["limits.cpus", "2", "default"]);
      expect(row("agent.harness.maxSteps")).toEqual(["agent.harness.maxSteps", "9", join(home(), "config.json")]);
      expect(row("agent.harness.timeoutMs")).toEqual(["agent.harness.timeoutMs", "1800000", "default"]);
      expect(JSON.parse((await run(["agent", "show", "coder", "--json"])).text)).toMatchObject({ harness: { maxSteps: 9 } });
      expect(row("models.default")).toEqual(["models.default", "a/b", join(home(), "config.json")]);
      const { settings } = JSON.parse((await run(["config", "--json"], { env })).text) as { settings: object[] };
      expect(settings).toContainEqual({ name: "image", value: "from-variable", from: "CAISSON_IMAGE" });
    } finally {
      await writeFile(join(home(), "config.json"), "{}");
    }
    const schema = JSON.parse((await run(["config", "--schema"])).text);
    expect(schema.properties.runtime.default).toBe("auto");
  });
});

test("an agent file's /tmp size and denied paths apply in its sandbox", async () => {
  const [agent, script] = [join(base(), "small.prompt"), join(base(), "small.json")];
  await writeFile(agent, "---\nsandbox: { runtime: auto, cpus: 1, tmp: 4m, denied_paths: [/opt] }\n---\nYou look.\n");
  const command = "df -k --output=size /tmp | tail -1; ls -A /opt | wc -l; nproc";
  await writeFile(script, JSON.stringify({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }] }));
  const done = await run(["run", agent, "look", "--no-workspace", "--model", `scripted:${script}`, "--json"]);
  expect([done.code, done.stderr]).toEqual([0, expect.any(String)]);
  expect(done.text).toMatch(/4096\\n0\\n/);
});

describe("a provider's key", () => {
  const KEY = "sk-canary-k3v7q2m5x4ab";

  test("reaches the provider, and never the sandbox, the log, errors or the output", async () => {
    const authorizations: string[] = [];
    const chunk = (delta: object, finish: string | null = null) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    const call = (name: string, args: object) => ({
      tool_calls: [{ index: 0, id: "x1", type: "function", function: { name, arguments: JSON.stringify(args) } }],
    });
    const server = createServer((request, response) => {
      authorizations.push(request.headers.authorization ?? "");
      request.resume();
      request.on("end", () => {
        if (authorizations.length === 1) {
          response
            .writeHead(429, { "content-type": "application/json", "retry-after-ms": "50" })
            .end(JSON.stringify({ error: { message: `Too many calls for ${KEY}` } }));
          return;
        }
        response.writeHead(200, { "content-type": "text/event-stream" });
        if (authorizations.length === 2)
          response.write(chunk(call("bash", { command: "env; cat /proc/*/environ | tr '\\0' '\\n'; echo looked" }), "tool_calls"));
        else response.write(chunk({ content: "Nothing there." }, "stop"));
        response.end("data: [DONE]\n\n");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const env = { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
      const result = await run(["run", "Look for secrets.", "--model", "compatible/m", "--no-workspace", "--json"], { env });
      expect(result.stderr).toBe("");
      expect(result.code).toBe(0);
      expect(authorizations).toEqual(Array(3).fill(`Bearer ${KEY}`));
      expect(result.text).toContain("looked");
      expect(result.text).toContain("Too many calls for …");
      expect(`${result.text}${result.stderr}`).not.toContain(KEY);
      const logs = await run(["logs", (JSON.parse(result.text.split("\n")[0] ?? "{}") as { data: { run: string } }).data.run, "--json"], {
        env,
      });
      expect(logs.text).toContain("looked");
      expect(grep("looked"), "the log is in the state folder").not.toBe("");
      expect(grep(KEY)).toBe("");
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  /** Returns the names of the files in the state folder that contain this text. */
  function grep(text: string): string {
    try {
      return execFileSync("grep", ["-rlaF", "--", text, home()], { encoding: "utf8" });
    } catch {
      return "";
    }
  }
});
