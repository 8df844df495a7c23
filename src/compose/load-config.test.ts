import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findPrice } from "../agent/model/prices.ts";
import { configSchema } from "../contract/config/config.ts";
import { loadConfig } from "./load-config.ts";

describe("the configuration", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "caisson-test-"));
  });
  afterEach(() => rm(dir, { recursive: true }));
  const load = (variables: Record<string, string> = {}) =>
    loadConfig({ stateDir: dir, configDir: join(dir, "xdg"), variable: (name) => variables[name] });
  const nowhere = { stateDir: "/nonexistent", configDir: "/nonexistent" };
  const put = (content: unknown, folder = "") =>
    writeFile(join(dir, folder, "config.json"), typeof content === "string" ? content : JSON.stringify(content));

  test("has defaults", async () => {
    const author = { name: "Caisson", email: "caisson@localhost" };
    const config = {
      runtime: "auto",
      limits: {},
      models: { prices: {} },
      secrets: {},
      agentFolders: [],
      author,
      network: { caFiles: [], privateFetchHosts: [], registries: {}, gateway: {} },
      health: { runningTtlMs: 15_000, idleTtlMs: 30_000, restart: true, graceMs: 10_000, cooldownMs: 60_000, restartsPerHour: 3 },
      workspace: { hide: [], show: [] },
      telemetry: { metricsWithoutToken: false },
      station: expect.any(Object),
      guardian: expect.any(Object),
      agent: {},
    };
    expect(await load()).toEqual({ config, file: null, sources: {} });
  });

  test("has the same defaults, in the same order, with and without a file", async () => {
    await put({});
    const configured = await load();
    expect(configured.file).not.toBeNull();
    expect(JSON.stringify(configured.config)).toBe(JSON.stringify((await loadConfig({ ...nowhere, variable: () => undefined })).config));
  });

  test("prefers the environment to the file, and reports each value's source", async () => {
    await put({ runtime: "oci", ociRuntime: "crun", limits: { pids: 50 }, models: { default: "a/b", baseUrl: "http://x.example/v1" } });
    const { config, sources } = await load({ CAISSON_RUNTIME: "docker", CAISSON_MODEL: "c/d", CAISSON_IMAGE: "" });
    expect(config).toMatchObject({
      runtime: "docker",
      ociRuntime: "crun",
      limits: { pids: 50 },
      models: { default: "c/d", baseUrl: "http://x.example/v1" },
    });
    const file = join(dir, "config.json");
    expect(sources).toEqual({
      runtime: "CAISSON_RUNTIME",
      ociRuntime: file,
      "limits.pids": file,
      "models.default": "CAISSON_MODEL",
      "models.baseUrl": file,
    });
  });

  test("reports the source of each agent default separately", async () => {
    await put({ agent: { model: "a/b", harness: { doomLoop: { threshold: 2 } }, sandbox: { limits: { cpus: 1 }, env: { A: "b" } } } });
    const { config, sources } = await load();
    expect(config.agent).toEqual({
      model: "a/b",
      harness: { doomLoop: { threshold: 2 } },
      sandbox: { limits: { cpus: 1 }, env: { A: "b" } },
    });
    const names = ["agent.model", "agent.harness.doomLoop.threshold", "agent.sandbox.limits.cpus", "agent.sandbox.env"];
    expect(sources).toEqual(Object.fromEntries(names.map((name) => [name, join(dir, "config.json")])));
    await put({ agent: { sandbox: { cpus: 1 } } });
    await expect(load()).rejects.toThrow('agent.sandbox has no setting "cpus"');
  });

  test("prefers the state folder's file to the user's", async () => {
    await mkdir(join(dir, "xdg"));
    await put({ image: "user" }, "xdg");
    expect((await load()).config.image).toBe("user");
    await put({ image: "own" });
    expect((await load()).config.image).toBe("own");
  });

  test("prefers the user's prices to the built-in ones", async () => {
    await put({ models: { prices: { "openai/gpt-5": { inputUsd: 7, outputUsd: 8, contextTokens: 1000 } } } });
    const { config } = await load();
    expect(findPrice("openai/gpt-5-mini", config.models.prices)).toEqual({ inputUsd: 7, outputUsd: 8, contextTokens: 1000 });
    expect(findPrice("anthropic/claude-sonnet-4-5", config.models.prices)?.inputUsd).toBe(3);
  });

  test("resolves a secret's file relative to the configuration file", async () => {
    await put({ secrets: { TOKEN: { from: { file: "token" }, hosts: ["api.example.org"] } } });
    expect((await load()).config.secrets).toMatchObject({ TOKEN: { from: { file: join(dir, "token") } } });
  });

  test("publishes a JSON schema with every setting", () => {
    const schema = configSchema() as { $schema: string; properties: Record<string, unknown>; additionalProperties: boolean };
    expect(schema.$schema).toContain("json-schema.org");
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(["runtime", "limits", "models", "agentFolders", "author"]));
    expect(schema.additionalProperties).toBe(false);
  });

  test.each([
    ["not JSON", "{"],
    ["no object", "[]"],
    ["an unknown setting", '{"runtme":"oci"}'],
    ["a fallback to the host", '{"fallbackRuntime":"host"}'],
    ["an impossible limit", '{"limits":{"pids":0}}'],
    ["a limit with an unknown name", '{"limits":{"memory":"64m"}}'],
    ["a negative price", '{"models":{"prices":{"a/b":{"inputUsd":-1,"outputUsd":1}}}}'],
    ["a price with an unknown name", '{"models":{"prices":{"a/b":{"inputUsd":1,"outputUsd":1,"input":1}}}}'],
  ])("rejects %s and names the file", async (_what, text) => {
    await put(text);
    await expect(load()).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("config.json") });
  });

  test.each([
    ['{"runtme":"oci"}', 'has no setting "runtme" (known: runtime, '],
    ['{"limits":{"memory":"64m"}}', 'limits has no setting "memory" (known: cpus, memoryBytes, '],
    ['{"limits":{"memoryBytes":"64m"}}', "limits.memoryBytes must be a number"],
    ['{"limits":{"memoryBytes":1}}', "limits.memoryBytes must be at least 4 MiB"],
    ['{"models":{"baseUrl":"x"}}', "models.baseUrl must be an address such as https://example.org"],
    ['{"secrets":{"T":{"hosts":[]}}}', "secrets.T.hosts must have at least 1 entry"],
    ['{"workspace":{"hide":"x"}}', "workspace.hide must be a list"],
  ])("explains what is wrong with %s", async (text, problem) => {
    await put(text);
    await expect(load()).rejects.toThrow(problem);
  });
});
