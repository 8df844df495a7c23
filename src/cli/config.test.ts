import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadConfig } from "./config.ts";

describe("the configuration", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "caisson-test-"));
  });
  afterEach(() => rm(dir, { recursive: true }));
  const load = (variables: Record<string, string> = {}) =>
    loadConfig({ stateDir: dir, configDir: join(dir, "xdg"), variable: (name) => variables[name] });

  test("has defaults", async () => {
    expect(await load()).toEqual({ config: { runtime: "auto", limits: {} }, file: null });
  });
  test("the environment wins over the file", async () => {
    await writeFile(join(dir, "config.json"), JSON.stringify({ runtime: "oci", ociRuntime: "crun", limits: { pids: 50 } }));
    const { config } = await load({ CAISSON_RUNTIME: "docker" });
    expect(config).toEqual({ runtime: "docker", ociRuntime: "crun", limits: { pids: 50 } });
  });
  test.each([
    ["not JSON", "{"],
    ["no object", "[]"],
    ["an unknown setting", '{"runtme":"oci"}'],
    ["a fallback to the host", '{"fallbackRuntime":"host"}'],
    ["an impossible limit", '{"limits":{"pids":0}}'],
  ])("%s is refused, naming the file", async (_what, text) => {
    await writeFile(join(dir, "config.json"), text);
    await expect(load()).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("config.json") });
  });
});
