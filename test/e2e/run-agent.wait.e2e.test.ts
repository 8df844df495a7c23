import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createScriptedModel } from "../../src/agent/model/scripted-model.ts";
import { AgentDefinition } from "../../src/contract/agent/agent.ts";
import { createCaisson, type RunEvent, runAgent } from "../../src/index.ts";
import { createOciRuntime } from "../../src/runtimes/oci/runtime.ts";

const demo = join(import.meta.dirname, "../../examples/demo");

describe("runAgent", () => {
  let base = "";
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), "caisson-test-"));
    await cp(join(demo, "project"), join(base, "project"), { recursive: true });
  });
  afterEach(async () => {
    await using caisson = createCaisson({ stateDir: join(base, "home") });
    expect(await caisson.list()).toEqual([]);
    await rm(base, { recursive: true, force: true });
  });

  test("runs a task in a sandbox, reports every event, and leaves the folder alone", async () => {
    const before = await readFile(join(base, "project/price.js"), "utf8");
    const events: RunEvent[] = [];
    const result = await runAgent({
      task: "Make the tests pass.",
      model: `scripted:${join(demo, "script.yaml")}`,
      folder: join(base, "project"),
      stateDir: join(base, "home"),
      onRunEvent: (event) => events.push(event),
    });
    expect(result).toMatchObject({ reason: "done", steps: 4 });
    expect(events[0]?.type).toBe("run.created");
    expect(events.at(-1)?.type).toBe("run.ended");
    expect(events.filter((event) => event.type === "file.changed").map((event) => event.data.path)).toEqual(["price.js"]);
    expect(await readFile(join(base, "project/price.js"), "utf8")).toBe(before);
  });

  test("lets a hook of the program block a call, and tells the agent why", async () => {
    const model = createScriptedModel({
      turns: [
        { calls: [{ tool: "bash", arguments: { command: "touch made" } }] },
        { say: "All right.", expect: { news: ["not in this program"] } },
      ],
    });
    const seen: string[] = [];
    const result = await runAgent({
      task: "Make a file.",
      model,
      folder: join(base, "project"),
      stateDir: join(base, "home"),
      hooks: {
        before: [
          (call) => {
            seen.push(call.tool);
            return { kind: "block", reason: "not in this program" };
          },
        ],
      },
    });
    expect(result).toMatchObject({ reason: "done", text: "All right." });
    expect(seen).toEqual(["bash"]);
  });

  test("gives an agent file its rights only if the program trusts it", async () => {
    await writeFile(join(base, "project/lead.prompt"), "---\nsandbox: { environment: { GREETING: hello } }\n---\nYou work.\n");
    const options = {
      task: "Greet.",
      agent: "lead.prompt",
      model: createScriptedModel({
        turns: [{ calls: [{ tool: "bash", arguments: { command: "echo $GREETING" } }] }, { say: "Done.", expect: { news: ["hello"] } }],
      }),
      folder: join(base, "project"),
      stateDir: join(base, "home"),
    };
    await expect(runAgent(options)).rejects.toMatchObject({ code: "denied", message: expect.stringContaining("GREETING=hello") });
    expect(await runAgent({ ...options, trustAgentFile: true })).toMatchObject({ reason: "done" });
  });

  test("serves the agent's network on a custom runtime", async () => {
    const stateDir = join(base, "home");
    const guestPath = join(import.meta.dirname, "../../guest/build/caisson-guest");
    await using runtime = createOciRuntime({ stateDir, guestPath }, { home: homedir(), path: process.env.PATH ?? "" });
    const result = await runAgent({
      task: "Look outside.",
      agent: AgentDefinition.parse({
        name: "looker",
        system: "You look.",
        sandbox: { network: { mode: "allow", rules: [{ host: "allowed.example" }] } },
      }),
      model: createScriptedModel({
        turns: [
          { calls: [{ tool: "bash", arguments: { command: "curl -s -o /dev/null -w 'status %{http_code}' http://other.example/" } }] },
          { say: "Done.", expect: { news: ["status 403"] } },
        ],
      }),
      runtime,
      folder: join(base, "project"),
      stateDir,
    });
    expect(result).toMatchObject({ reason: "done", text: "Done." });
  });
});
