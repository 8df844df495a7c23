import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { AgentDefinition, type GuardianSettings } from "../../contract/agent/agent.ts";
import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { GuardianAction } from "../../contract/guardian/guardian-config.ts";
import { parsePolicy, parseSecret } from "../../contract/network/network-text.ts";
import { defineAgent } from "../file/define-agent.ts";
import { findAgent } from "../file/find-agents.ts";
import { parseAgentFile } from "../file/parse-agent-file.ts";
import { wideningRules } from "./permission-rights.ts";
import { rightsOf } from "./rights.ts";
import { pattern, permission } from "./testing-rights.ts";

const usual = { limits: {} };
const define = (settings: Record<string, unknown>) => AgentDefinition.parse({ name: "x", system: "You work.", ...settings });
const rightsFrom = (settings: Record<string, unknown>, bounds = usual) => rightsOf(define(settings), bounds);
const fromFile = async (frontmatter: string) =>
  rightsOf(await defineAgent(parseAgentFile("a.prompt", `---\n${frontmatter}\n---\nYou work.\n`)), usual);

describe("the rights that an agent file requests", () => {
  test("are empty for prompts, tools, tighter limits and the built-in coder", async () => {
    expect(
      await fromFile(`
description: Reads.
tools: [read, grep, "mcp:db"]
agents: [coder]
config: { temperature: 0.2, maxOutputTokens: 64000 }
harness_config: { max_steps: 12, timeout: 10m, retries: 1, on_outage: stop, on_budget: stop, on_ask: deny, doom_loop_threshold: 2 }
doom_loop: { action: fail }
compaction: { enabled: false, threshold: 0.5 }
sandbox: { mode: auto, network: none, memory: 2g, cpu: 1, disk: 1g, pids: 100, timeout: 5m, allow_root: false }
workspace: { scope: workflow, cleanup: on_success }
permissions: { "*": ask, "bash:*": deny, "read": allow, "write:*": ask, "bash:git push*": deny }
skills: [skills]
memory: [AGENTS.md, CLAUDE.md]`),
    ).toEqual([]);
    const { file } = await findAgent("coder", { cwd: "/", ownFolder: null, namedFolders: [], folders: [] });
    expect(rightsOf(await defineAgent(file), usual)).toEqual([]);
  });

  test.each<[string, string, string]>([
    ["model: anthropic/claude-opus-4-5", "model", "ask the model anthropic/claude-opus-4-5, with your key and at your cost"],
    ["harness_config: { max_steps: 51 }", "harness.maxSteps", "51 steps (usual: 50)"],
    ["harness_config: { timeout: 31m }", "harness.timeoutMs", "1860000 milliseconds of work (usual: 1800000)"],
    ["harness_config: { retries: 17 }", "harness.retries", "17 retries of a model call (usual: 16)"],
    ["doom_loop: { threshold: 4 }", "harness.doomLoop.threshold", "4 repetitions before it counts as a loop (usual: 3)"],
    ["doom_loop: { action: summarize }", "harness.doomLoop.action", "continue after a loop without asking"],
    ['permissions: { "bash:git push*": allow }', "permissions", "do without asking: bash:git push*"],
    [
      'permissions: { "bash:git push --force*": ask }',
      "permissions",
      "do after asking, although denied by default: bash:git push --force*",
    ],
    ["hooks: { before: [{ tools: [bash], command: ./x }] }", "hooks", "run in the sandbox before bash: ./x"],
    ["hooks: { after: [{ command: ./x }] }", "hooks", "run in the sandbox after each tool: ./x"],
    [
      "mcp: { db: { command: node, args: [a b.js], env: { X: y } } }",
      "mcp",
      'start in the sandbox, as the MCP server db: X=y node "a b.js"',
    ],
    ["sandbox: { mode: host }", "sandbox.runtime", "use the runtime host"],
    ["sandbox: { image: 'debian:12' }", "sandbox.image", "start from the image debian:12"],
    ["sandbox: { template: 'debian:12' }", "sandbox.template", "start from the template or image debian:12"],
    ["sandbox: { template: 'example.com/a:1' }", "sandbox.image", "start from the image example.com/a:1"],
    ["sandbox: { memory: 5g }", "sandbox.limits.memoryBytes", "5368709120 bytes of memory (usual: 4294967296)"],
    ["sandbox: { cpu: 2.5 }", "sandbox.limits.cpus", "2.5 processors (usual: 2)"],
    ["sandbox: { pids: 1001 }", "sandbox.limits.pids", "1001 processes (usual: 1000)"],
    ["sandbox: { timeout: 31m }", "sandbox.limits.wallClockMs", "1860000 milliseconds for one command (usual: 1800000)"],
    ["sandbox: { allow_root: true }", "sandbox.allowRoot", "be root inside the sandbox"],
    ["sandbox: { environment: { LD_PRELOAD: /workspace/x.so } }", "sandbox.env", "set the variable LD_PRELOAD=/workspace/x.so"],
    ["sandbox: { secrets: [TOKEN] }", "sandbox.secretNames.TOKEN", "use your secret TOKEN, as your configuration defines it"],
    [
      "sandbox: { gateway: { wires: [openai], models: [gpt-5], costUsdMax: 2 } }",
      "sandbox.gateway",
      "ask models of openai from inside, with your key and at your cost: gpt-5, at most $2",
    ],
    // The same settings in the other places where a file may have them.
    ["harness_config: { sandbox: { mode: host } }", "sandbox.runtime", "use the runtime host"],
    ["harness: { sandbox: { allow_root: true } }", "sandbox.allowRoot", "be root inside the sandbox"],
  ])("%s", async (frontmatter, field, text) => {
    expect(await fromFile(frontmatter)).toEqual([{ field, text }]);
  });

  test("of a network are listed one by one", async () => {
    const rights = await fromFile(
      "sandbox: { network: [open, 'private host.caisson:8080', 'GET api.x.org/v1', 'registries:npm', transparent] }",
    );
    expect(rights.map(({ text }) => text)).toEqual([
      "reach every public address",
      "reach private host.caisson:8080",
      "reach GET api.x.org/v1",
      "reach the package registry npm",
      "use a transparent proxy for programs without proxy support",
    ]);
    expect(await fromFile("sandbox: { network: true }")).toMatchObject([{ text: "reach every public address" }]);
    expect(new Set(rights.map(({ field }) => field))).toEqual(new Set(["sandbox.network"]));
  });

  test.each([
    [
      "sandbox: { secrets: { X: { hosts: [e.test], from: { command: [sh, -c, 'id; echo x'] } } } }",
      'from command sh -c "id; echo x", for e.test',
    ],
    ["sandbox: { secrets: { X: { hosts: [e.test], from: { file: /root/.ssh/id_rsa } } } }", "from file /root/.ssh/id_rsa, for e.test"],
    ["sandbox: { secrets: { ANTHROPIC_API_KEY: evil.test } }", "from the variable ANTHROPIC_API_KEY, for evil.test"],
    ["sandbox: { image: / }", "start from the image /"],
    ["sandbox: { image: ./rootfs }", "start from the image ./rootfs"],
    ["sandbox: { template: 'oci:/srv/layout' }", "start from the image oci:/srv/layout"],
  ])("%s can never be granted", async (frontmatter, text) => {
    expect(await fromFile(frontmatter)).toMatchObject([{ text: expect.stringContaining(text), never: expect.any(String) }]);
  });

  test("are measured against the user's own limits, if there are any", () => {
    const sandbox = { limits: { memoryBytes: 2 ** 30, diskBytes: 2 ** 30 } };
    expect(rightsFrom({ sandbox })).toEqual([]);
    expect(rightsFrom({ sandbox }, { limits: { memoryBytes: 2 ** 29, diskBytes: 2 ** 29 } }).map(({ field }) => field)).toEqual([
      "sandbox.limits.memoryBytes",
      "sandbox.limits.diskBytes",
    ]);
  });

  test("are one line of printable ASCII each, whatever the file contains", () => {
    const hostile = "x\u001b[2K\r\n  + nothing\u202eevil\u0430\u009b";
    const rights = rightsFrom({
      model: hostile,
      permissions: { [`bash:git push*${hostile}`]: "allow" },
      hooks: { before: [{ command: hostile, tools: [hostile] }] },
      mcp: { db: { command: hostile, args: [hostile], env: { X: hostile } } },
      sandbox: { runtime: hostile, image: hostile, env: { A: hostile }, gateway: { models: [hostile] } },
    });
    expect(rights).toHaveLength(8);
    for (const { text } of rights) expect(text).toMatch(/^[ -~]+$/);
  });

  test("include unknown settings, which cannot be granted", () => {
    const definition = { ...define({}), escapeHatch: true } as AgentDefinition;
    expect(rightsOf(definition, usual)).toMatchObject([{ field: "escapeHatch", never: expect.any(String) }]);
    const inner = define({});
    expect(rightsOf({ ...inner, sandbox: { ...inner.sandbox, devices: ["/"] } as never }, usual)).toMatchObject([
      { field: "sandbox.devices" },
    ]);
  });

  test("cannot be granted for machine folders, snapshots and OCI runtimes", async () => {
    const sandbox = { mounts: [{ path: "/srv", target: "/mnt/srv" }], snapshot: "sn_aaaaaaaaaaaa", ociRuntime: "/tmp/evil" };
    const rights = rightsOf(define({ sandbox }), usual);
    expect(rights.map(({ field }) => field)).toEqual(["sandbox.ociRuntime", "sandbox.snapshot", "sandbox.mounts"]);
    for (const right of rights) expect(right).toMatchObject({ never: expect.any(String) });
    await expect(fromFile("sandbox: { mounts: [{ path: /srv, target: /mnt/srv }] }")).rejects.toMatchObject({ code: "invalid" });
  });

  test("include those of the sub-agents in a definition", () => {
    const { subAgents: _, ...other } = define({ hooks: { before: [{ command: "./x" }] } });
    expect(rightsFrom({ subAgents: { y: other } })).toEqual([
      { field: "subAgents.hooks", text: "y: run in the sandbox before each tool: ./x" },
    ]);
  });
});

/**
 * Checks, for every setting, that it is not wider than the default. Written separately from the judges, so that neither
 * can miss a setting alone.
 */
const harmless: Record<string, (value: never) => boolean> = {
  name: () => true,
  description: () => true,
  model: (value: unknown) => value === undefined,
  tools: () => true,
  agents: () => true,
  system: () => true,
  temperature: () => true,
  outputTokensMax: () => true,
  "harness.maxSteps": (value: number) => value <= 50,
  "harness.timeoutMs": (value: number) => value <= 1_800_000,
  "harness.onBudget": () => true,
  "harness.onAsk": () => true,
  "harness.doomLoop": (value: { threshold: number; action: string }) => value.threshold <= 3 && value.action !== "summarize",
  "harness.compaction": () => true,
  "harness.retries": (value: number) => value <= 16,
  "harness.onOutage": () => true,
  permissions: (value: Record<string, never>) => wideningRules(value).length === 0,
  floor: () => true,
  hooks: (value: { before: unknown[]; after: unknown[] }) => value.before.length + value.after.length === 0,
  mcp: (value: object) => Object.keys(value).length === 0,
  "sandbox.runtime": (value: unknown) => value === undefined || value === "auto",
  "sandbox.image": (value: unknown) => value === undefined,
  "sandbox.ociRuntime": (value: unknown) => value === undefined,
  "sandbox.snapshot": (value: unknown) => value === undefined,
  "sandbox.template": (value: unknown) => value === undefined,
  "sandbox.mounts": (value: unknown[] | undefined) => value === undefined || value.length === 0,
  "sandbox.mountGuard": () => true,
  "sandbox.limits": (value: Record<string, number>) =>
    Object.entries(value).every(([name, limit]) => limit <= ((defaultLimits as Record<string, number>)[name] ?? Number.POSITIVE_INFINITY)),
  "sandbox.allowRoot": (value: unknown) => value === false,
  "sandbox.readOnlyPaths": () => true,
  "sandbox.deniedPaths": () => true,
  "sandbox.shmBytes": (value: number | undefined) => value === undefined || value <= 2 ** 26,
  "sandbox.tmpBytes": (value: number | undefined) => value === undefined || value <= defaultLimits.tmpBytes,
  "sandbox.stationAccess": (value: unknown) => value === false,
  "sandbox.env": (value: object) => Object.keys(value).length === 0,
  "sandbox.network": (value: { mode: string }) => value.mode === "none",
  "sandbox.secrets": (value: object) => Object.keys(value).length === 0,
  "sandbox.secretNames": (value: unknown[]) => value.length === 0,
  "sandbox.gateway": (value: unknown) => value === undefined,
  "workspace.scope": () => true,
  "workspace.cleanup": () => true,
  skills: () => true,
  memory: () => true,
  subAgents: (value: object) => Object.keys(value).length === 0,
  guardian: ({ enabled, atMost }: GuardianSettings = {}) => enabled !== false && (atMost === undefined || atMost === "stop"),
};

const text = fc.string({ maxLength: 12 });
const word = fc.stringMatching(/^[a-zA-Z0-9][a-z0-9]{0,8}$/);
const name = fc.stringMatching(/^[A-Z_]{1,8}$/);
const hook = fc.record({ command: fc.string({ minLength: 1, maxLength: 9 }) });
const definitions = fc
  .record(
    {
      description: text,
      model: word,
      tools: fc.array(word),
      agents: fc.array(word),
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      outputTokensMax: fc.integer({ min: 1, max: 1e6 }),
      harness: fc.record(
        {
          maxSteps: fc.integer({ min: 1, max: 200 }),
          timeoutMs: fc.integer({ min: 1000, max: 4_000_000 }),
          onBudget: fc.constantFrom("ask", "stop"),
          onAsk: fc.constantFrom("wait", "deny"),
          retries: fc.integer({ min: 0, max: 100 }),
          onOutage: fc.constantFrom("pause", "stop"),
          doomLoop: fc.record({ threshold: fc.integer({ min: 2, max: 9 }), action: fc.constantFrom("summarize", "pause", "fail") }),
          compaction: fc.record({ enabled: fc.boolean() }),
        },
        { requiredKeys: [] },
      ),
      permissions: fc.dictionary(pattern, permission, { maxKeys: 5 }),
      hooks: fc.record({ before: fc.array(hook, { maxLength: 2 }), after: fc.array(hook, { maxLength: 2 }) }),
      mcp: fc.dictionary(word, fc.record({ command: word }), { maxKeys: 2 }),
      sandbox: fc.record(
        {
          runtime: fc.constantFrom("auto", "host", "oci"),
          image: fc.constantFrom("/", "debian:12", "./x"),
          limits: fc.record(
            {
              cpus: fc.integer({ min: 1, max: 4 }),
              memoryBytes: fc.integer({ min: 2 ** 30, max: 2 ** 34 }),
              pids: fc.integer({ min: 1, max: 3000 }),
            },
            { requiredKeys: [] },
          ),
          allowRoot: fc.boolean(),
          stationAccess: fc.boolean(),
          readOnlyPaths: fc.constantFrom([], ["/etc"]),
          tmpBytes: fc.integer({ min: 2 ** 20, max: 2 ** 31 }),
          shmBytes: fc.integer({ min: 2 ** 20, max: 2 ** 28 }),
          env: fc.dictionary(name, text, { maxKeys: 2 }),
          network: fc.constantFrom(...[["none"], ["open"], ["x.org"], ["private h:1"], ["registries"]].map(parsePolicy)),
          secrets: fc.dictionary(name, fc.constant(parseSecret("A@x.org").config), { maxKeys: 2 }),
          secretNames: fc.array(name, { maxLength: 2 }),
          gateway: fc.constantFrom({ wires: ["openai" as const] }),
        },
        { requiredKeys: [] },
      ),
      workspace: fc.record({ cleanup: fc.constantFrom("always", "on_success", "never") }),
      guardian: fc.record({ enabled: fc.boolean(), atMost: fc.constantFrom(...GuardianAction.options) }, { requiredKeys: [] }),
      skills: fc.array(word),
      memory: fc.array(word),
    },
    { requiredKeys: [] },
  )
  .map(define);

const at = (value: unknown, path: string) =>
  path.split(".").reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], value);

describe("a definition", () => {
  test("has only settings that this file checks", () => {
    const grouped = ["harness", "sandbox", "workspace"] as const;
    const inner = (group: (typeof grouped)[number]) =>
      Object.keys(AgentDefinition.shape[group].unwrap().shape).map((key) => `${group}.${key}`);
    const settings = Object.keys(AgentDefinition.shape).filter((key) => !grouped.includes(key as never));
    expect(Object.keys(harmless).sort()).toEqual([...settings, ...grouped.flatMap(inner)].sort());
  });

  test("is never wider than the default unless it requests rights", () => {
    fc.assert(
      fc.property(definitions, (definition) => {
        const reduced = structuredClone(definition) as unknown as Record<string, Record<string, unknown>>;
        const plain = define({}) as unknown as Record<string, Record<string, unknown>>;
        // Resets every setting that requests a right.
        for (const { field } of rightsOf(definition, usual)) {
          const [group = "", key = ""] = field.split(".");
          if (["harness", "sandbox"].includes(group)) (reduced[group] as Record<string, unknown>)[key] = plain[group]?.[key];
          else reduced[group] = plain[group] as Record<string, unknown>;
        }
        expect(rightsOf(reduced as unknown as AgentDefinition, usual)).toEqual([]);
        for (const [path, isHarmless] of Object.entries(harmless)) expect(isHarmless(at(reduced, path) as never), path).toBe(true);
        // A harmless definition requests no rights.
        if (Object.entries(harmless).every(([path, isHarmless]) => isHarmless(at(definition, path) as never)))
          expect(rightsOf(definition, usual)).toEqual([]);
      }),
      { numRuns: tries(500) },
    );
  });
});
