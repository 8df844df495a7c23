import { describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import { defineAgent, digestOf } from "./define-agent.ts";
import { parseAgentFile } from "./parse-agent-file.ts";

const file = (frontmatter: string, template = "You work.") => parseAgentFile("agents/x.prompt", `---\n${frontmatter}\n---\n${template}\n`);
const define = (frontmatter: string, template?: string, input: Record<string, unknown> = {}) =>
  defineAgent(file(frontmatter, template), { input });
const complaint = (frontmatter: string): string => {
  try {
    file(frontmatter);
  } catch (error) {
    if (error instanceof CaissonError) return error.message;
    throw error;
  }
  return "none";
};

describe("an agent file", () => {
  test("accepts a permission preset with or without extra rules", async () => {
    const { permissions } = await define("permissions: strict");
    expect(permissions).toMatchObject({ "bash:rm -rf*": "deny", "bash:git commit*": "ask" });
    const both = await define('permissions: [strict, { "bash:git commit*": allow }]');
    expect(both.permissions).toEqual({ ...permissions, "bash:git commit*": "allow" });
  });

  test("reads every key in the short form", async () => {
    const definition = await define(`
model: anthropic/claude-sonnet-4-5
name: reviewer
description: Reads a change.
tools: [read, bash, "mcp:db"]
agents: [coder]
config: { temperature: 0.2, maxOutputTokens: 4000, topK: 5 }
harness: agentic
harness_config:
  max_steps: 12
  doom_loop_threshold: 5
  timeout: 10m
  retries: 1
  on_outage: stop
  on_budget: stop
  on_ask: deny
  sandbox: { mode: oci, image: alpine, timeout: 5m, network: none, memory: 2g, cpu: 1.5, disk: 1g, pids: 100, environment: { A: b } }
workspace: { scope: workflow, cleanup: on_success }
permissions: { "bash:git push*": deny }
hooks: { before: [{ tools: [bash], command: ./check, timeoutMs: 500 }], after: [{ command: ./log }] }
mcp: { db: { command: node, args: [server.js], env: { X: "1" } } }
skills: { sources: [skills] }
memory: { sources: [AGENTS.md, CLAUDE.md] }`);
    expect(definition).toEqual({
      name: "reviewer",
      description: "Reads a change.",
      model: "anthropic/claude-sonnet-4-5",
      tools: ["read", "bash", "mcp:db"],
      agents: ["coder"],
      system: "You work.",
      temperature: 0.2,
      outputTokensMax: 4000,
      harness: {
        maxSteps: 12,
        timeoutMs: 600_000,
        retries: 1,
        onOutage: "stop",
        onBudget: "stop",
        onAsk: "deny",
        doomLoop: { threshold: 5, action: "pause" },
        compaction: { enabled: true, threshold: 0.85, protectTokens: 40_000 },
      },
      permissions: { "bash:git push*": "deny" },
      floor: {},
      hooks: { before: [{ tools: ["bash"], command: "./check", timeoutMs: 500 }], after: [{ command: "./log", timeoutMs: 30_000 }] },
      mcp: { db: { command: "node", args: ["server.js"], env: { X: "1" } } },
      sandbox: {
        runtime: "oci",
        image: "alpine",
        allowRoot: false,
        stationAccess: false,
        env: { A: "b" },
        network: { mode: "none" },
        secrets: {},
        secretNames: [],
        limits: { cpus: 1.5, memoryBytes: 2 ** 31, diskBytes: 2 ** 30, pids: 100, wallClockMs: 300_000 },
      },
      workspace: { scope: "workflow", cleanup: "on_success" },
      skills: ["skills"],
      memory: ["AGENTS.md", "CLAUDE.md"],
      subAgents: {},
    });
  });

  test("reads every key in the long form", async () => {
    const definition = await define(`
harness:
  enabled: true
  max_steps: 7
  timeout: 90
  doom_loop: { threshold: 4, action: summarize }
  compaction: { enabled: false, threshold: 0.5, protect_tokens: 100, history_offload: true }
  progress: { file: progress.md, sync_interval: 30s }
  sandbox: { template: host, network: { enabled: false, allowed_hosts: [] } }
sandbox: { memory: 512m, allow_root: true }
skills: [a, b]
memory: []`);
    expect(definition.harness).toMatchObject({
      maxSteps: 7,
      timeoutMs: 90_000,
      doomLoop: { threshold: 4, action: "summarize" },
      compaction: { enabled: false, threshold: 0.5, protectTokens: 100 },
    });
    expect(definition.sandbox).toEqual({
      allowRoot: true,
      stationAccess: false,
      env: {},
      network: { mode: "none" },
      secrets: {},
      secretNames: [],
      limits: { memoryBytes: 2 ** 29 },
    });
    expect([definition.name, definition.skills, definition.memory]).toEqual(["x", ["a", "b"], []]);
  });

  test("accepts the names of the command line and the older names", async () => {
    const current = await define("sandbox: { runtime: oci, cpus: 1.5, env: { A: b } }");
    expect(current).toEqual(await define("sandbox: { mode: oci, cpu: 1.5, environment: { A: b } }"));
    expect(current).toEqual(await define("sandbox: { runtime: oci, mode: oci, cpus: 1.5, cpu: 1.5, env: { A: b } }"));
    expect(current.sandbox).toMatchObject({ runtime: "oci", limits: { cpus: 1.5 }, env: { A: "b" } });
    // The innermost block wins, whichever name it uses.
    const nested = await define("harness_config: { sandbox: { cpu: 1 } }\nsandbox: { cpus: 2 }");
    expect(nested.sandbox.limits).toEqual({ cpus: 2 });
  });

  test("rejects two names of one setting with different values", async () => {
    await expect(define("sandbox: { cpus: 2, cpu: 1 }")).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("sandbox.cpus and sandbox.cpu differ"),
      hint: expect.stringContaining("Keep cpus"),
    });
  });

  test("reads the size of /tmp and the protected paths", async () => {
    const { sandbox } = await define("sandbox: { tmp: 64m, read_only_paths: [/workspace/a], denied_paths: [/opt] }");
    expect(sandbox).toMatchObject({ tmpBytes: 2 ** 26, readOnlyPaths: ["/workspace/a"], deniedPaths: ["/opt"] });
  });

  test("rejects a workspace mode by name", () => {
    expect(complaint("workspace: { mode: host }")).toMatch(/x\.prompt:2: workspace\.mode is not supported.*always copy-on-write/);
  });

  test("uses the defaults if it has only a prompt", async () => {
    const definition = await define("description: d");
    expect(definition.harness).toMatchObject({ maxSteps: 50, timeoutMs: 1_800_000, doomLoop: { threshold: 3, action: "pause" } });
    expect(definition.memory).toEqual(["AGENTS.md"]);
    expect(digestOf(definition)).not.toBe(digestOf(await define("description: e")));
  });

  test.each([
    ["model: [", 2, "must be sufficiently indented and end with a ]\n"],
    ["name: a\nmodel: m\nname: b", 4, "unique"],
    ["model: m\nmax_stps: 3", 3, "there is no setting"],
    ["harness_config:\n  max_step: 3", 3, 'did you mean "max_steps"?'],
    ["harness:\n  doom_loop:\n    treshold: 3", 4, 'did you mean "threshold"?'],
    ["sandbox:\n  network:\n    enabeld: true", 4, 'did you mean "enabled"?'],
    ["mcp:\n  db:\n    comand: x", 4, 'did you mean "command"?'],
    ["descripton: x", 2, 'did you mean "description"?'],
    ["name: 7", 2, "name must be text"],
    ["tools: read", 2, "tools must be a list"],
    ["model: m\nharness_config:\n  timeout: soon", 4, "harness_config.timeout is not a duration such as 30m"],
    ["sandbox:\n  memory: lots", 3, "is not a size such as 4g"],
    ["sandbox:\n  cpu: many", 3, "is not a number"],
    ["harness_config:\n  max_steps: 0", 3, "max_steps"],
    ["permissions:\n  'bash:*': maybe", 3, "permissions.bash:*"],
    ["permissions: loose", 2, "permissions"],
    ["name: ../up", 2, "letters, digits"],
    ["harness: magic", 2, "harness"],
    ["hooks:\n  before:\n    - command: x\n      timout: 3", 5, "there is no setting"],
    [`a: &a [x]\nb: &b [${"*a,".repeat(50)}]\nc: [${"*b,".repeat(50)}]`, 2, ""],
  ])("reports the line of the problem in %j", (frontmatter, line, words) => {
    const text = `${complaint(frontmatter)}\n`;
    expect(text).toContain(`agents/x.prompt:${line}: `);
    expect(text).toContain(words);
  });

  test("reports all problems at once", () => {
    expect(complaint("max_stps: 3\nname: 7\nsandbox: { memory: x }").match(/agents\/x\.prompt:\d+:/g)).toHaveLength(3);
    expect(() => parseAgentFile("p", "no frontmatter")).toThrow(/p:1:/);
    expect(() => parseAgentFile("p", "x".repeat(1_000_001))).toThrow(expect.objectContaining({ code: "too_large" }));
    expect(parseAgentFile("p", "---\r\nname: a\r\n---\r\nHello\r\n").frontmatter.name).toBe("a");
  });

  test.each([
    ["sandbox: { network: none }", { mode: "none" }],
    ["sandbox: { network: true }", { mode: "open" }],
    ["sandbox: { network: { enabled: true } }", { mode: "open" }],
    ["sandbox: { network: { enabled: false, allowed_hosts: [example.com] } }", { mode: "none" }],
    ["sandbox: { network: { allowed_hosts: [example.com] } }", { mode: "allow", rules: [{ host: "example.com" }] }],
    [
      "sandbox:\n  network:\n    - registries:npm\n    - GET api.github.com/repos",
      { registries: ["npm"], rules: [{ methods: ["GET"], paths: ["/repos"] }] },
    ],
  ])("%s", async (text, policy) => {
    expect((await define(text)).sandbox.network).toMatchObject(policy);
  });

  test("reads secrets in short or full form, and gateway wires", async () => {
    const { secrets, gateway } = (
      await define("sandbox: { secrets: { A: 'api.x.org;git', B: { from: { file: /k }, hosts: [y.org] } }, gateway: [openai] }")
    ).sandbox;
    expect(secrets).toMatchObject({
      A: { hosts: ["api.x.org"], git: { username: "x-access-token" } },
      B: { from: { file: "/k" }, hosts: ["y.org"] },
    });
    expect(gateway).toEqual({ wires: ["openai"] });
  });

  test("rejects an invalid network, with the file and a hint", async () => {
    await expect(define("sandbox: { network: 'not a host' }")).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("sandbox.network"),
      hint: expect.stringContaining("HOST"),
    });
  });
});

describe("a template", () => {
  const schema = "input:\n  schema:\n    language: string\n    count?: integer\n    strict?: boolean\n  default: { count: 2 }";

  test("is filled from inputs and defaults", async () => {
    const { system } = await define(schema, "Write {{language}} {{count}} {{#if strict}}strictly{{/if}}", {
      language: "C",
      strict: "true",
    });
    expect(system).toBe("Write C 2 strictly");
    expect((await define(schema, "{{count}}", { language: "C", count: "7" })).system).toBe("7");
  });

  test.each([
    [{}, /language is missing/],
    [{ language: "C", count: "many" }, /count/],
    [{ language: "C", colour: "red" }, /colour/],
  ])("rejects the input %j and says why", async (input, words) => {
    const failed = define(schema, "x", input);
    await expect(failed).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("language, count, strict") });
    await expect(failed).rejects.toThrow(words);
  });

  test("is reported with its file if it is malformed", async () => {
    await expect(define("name: a", "{{#if x}}")).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("agents/x.prompt"),
    });
  });
});
