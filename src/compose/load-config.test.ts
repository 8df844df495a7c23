import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findPrice } from "../agent/model/prices.ts";
import { configSchema } from "../contract/config.ts";
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
    };
    expect(await load()).toEqual({ config, file: null, sources: {} });
  });

  test("has the same defaults where something was configured, in the same order: a station is compared by their text", async () => {
    await put({});
    const configured = await load();
    expect(configured.file).not.toBeNull();
    expect(JSON.stringify(configured.config)).toBe(JSON.stringify((await loadConfig({ ...nowhere, variable: () => undefined })).config));
  });

  test("the environment wins over the file, and each value says where it is from", async () => {
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

  test("the state folder's own file wins over the user's", async () => {
    await mkdir(join(dir, "xdg"));
    await put({ image: "user" }, "xdg");
    expect((await load()).config.image).toBe("user");
    await put({ image: "own" });
    expect((await load()).config.image).toBe("own");
  });

  test("prices of the user's go over ours", async () => {
    await put({ models: { prices: { "openai/gpt-5": { inputUsd: 7, outputUsd: 8, contextTokens: 1000 } } } });
    const { config } = await load();
    expect(findPrice("openai/gpt-5-mini", config.models.prices)).toEqual({ inputUsd: 7, outputUsd: 8, contextTokens: 1000 });
    expect(findPrice("anthropic/claude-sonnet-4-5", config.models.prices)?.inputUsd).toBe(3);
  });

  test("a secret's file is relative to the file that names it, not to where one stands", async () => {
    await put({ secrets: { TOKEN: { from: { file: "token" }, hosts: ["api.example.org"] } } });
    expect((await load()).config.secrets).toMatchObject({ TOKEN: { from: { file: join(dir, "token") } } });
  });

  test("the schema of the file is one, and knows every setting", () => {
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
    ["a limit by a name that is none", '{"limits":{"memory":"64m"}}'],
    ["a negative price", '{"models":{"prices":{"a/b":{"inputUsd":-1,"outputUsd":1}}}}'],
    ["a price by a name that is none", '{"models":{"prices":{"a/b":{"inputUsd":1,"outputUsd":1,"input":1}}}}'],
  ])("%s is refused, naming the file", async (_what, text) => {
    await put(text);
    await expect(load()).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("config.json") });
  });

  test.each([
    ['{"runtme":"oci"}', 'has no setting "runtme" (there are runtime, '],
    ['{"limits":{"memory":"64m"}}', 'limits has no setting "memory" (there are cpus, memoryBytes, '],
    ['{"limits":{"memoryBytes":"64m"}}', "limits.memoryBytes must be a number"],
    ['{"limits":{"memoryBytes":1}}', "limits.memoryBytes must be at least 4 MiB"],
    ['{"models":{"baseUrl":"x"}}', "models.baseUrl must be an address such as https://example.org"],
    ['{"secrets":{"T":{"hosts":[]}}}', "secrets.T.hosts must have at least 1 entry"],
    ['{"workspace":{"hide":"x"}}', "workspace.hide must be a list"],
  ])("%s is told in words", async (text, told) => {
    await put(text);
    await expect(load()).rejects.toThrow(told);
  });
});
