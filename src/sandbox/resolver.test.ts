import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Capabilities } from "../contract/sandbox/sandbox.ts";
import { createResolver } from "./resolver.ts";
import type { Finding, Runtime } from "./runtime.ts";
import { createRuntimeSet } from "./runtime-set.ts";

interface Scripted {
  usable: boolean;
  isolation?: number;
  findings?: Finding[];
}

describe("the resolver", () => {
  let stateDir: string;
  let probes: string[];
  let time: number;
  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "caisson-test-"));
    probes = [];
    time = Date.now();
  });
  afterEach(() => rm(stateDir, { recursive: true }));

  /** Implements only what the resolver uses: the probe and the capabilities. */
  function scripted(name: string, script: Scripted): Runtime {
    const runtime: Pick<Runtime, "name" | "probe" | "capabilities"> = {
      name,
      async probe() {
        probes.push(name);
        return { usable: script.usable, startMs: script.usable ? 1 : null, findings: script.findings ?? [] };
      },
      capabilities: async () => ({ isolation: script.isolation ?? 1 }) as Capabilities,
    };
    return runtime as Runtime;
  }
  function resolverOf(scripts: Record<string, Scripted>, options: { fallbackRuntime?: string; path?: string } = {}) {
    const factories = Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, async () => scripted(name, script)]));
    const runtimes = createRuntimeSet({ context: { stateDir, guestPath: "/nonexistent" }, factories });
    return createResolver({ runtimes, stateDir, guestPath: "/nonexistent", path: "/usr/bin", now: () => time, ...options });
  }

  test("auto picks the first proven runtime and caches the probe", async () => {
    const scripts = { oci: { usable: true }, docker: { usable: true } };
    expect((await resolverOf(scripts).resolve("auto")).name).toBe("oci");
    expect((await resolverOf(scripts).resolve("auto")).name).toBe("oci");
    expect(probes).toEqual(["oci"]);
  });
  test("concurrent callers with a fresh state folder share one probe", async () => {
    const resolver = resolverOf({ oci: { usable: true } });
    const names = await Promise.all(Array.from({ length: 24 }, async () => (await resolver.resolve("auto")).name));
    expect(new Set(names)).toEqual(new Set(["oci"]));
    expect(probes).toEqual(["oci"]);
    // Processes, each with its own resolver, share it too.
    await Promise.all(Array.from({ length: 24 }, () => resolverOf({ oci: { usable: true } }).probe("oci")));
    expect((await readdir(stateDir)).sort()).toEqual(["probes.json"]);
  });
  test("caches in memory if the cache file cannot be written", async () => {
    await mkdir(join(stateDir, "probes.json"));
    const resolver = resolverOf({ oci: { usable: true } });
    expect((await resolver.resolve("auto")).name).toBe("oci");
    expect((await resolver.resolve("auto")).name).toBe("oci");
    expect(probes).toEqual(["oci"]);
    await rm(join(stateDir, "probes.json"), { recursive: true });
    await resolver.forget();
    await resolver.resolve("auto");
    expect(probes).toEqual(["oci", "oci"]);
  });
  test("probes again after a while, after a change of the machine, and after forget", async () => {
    const scripts = { oci: { usable: true } };
    await resolverOf(scripts).resolve("auto");
    time += 2 * 60 * 60_000;
    await resolverOf(scripts).resolve("auto");
    expect(probes.length).toBe(2);
    await writeFile(join(stateDir, "runc"), "");
    await resolverOf(scripts, { path: stateDir }).resolve("auto");
    expect(probes.length).toBe(3);
    const resolver = resolverOf(scripts);
    await resolver.forget();
    await resolver.resolve("auto");
    expect(probes.length).toBe(4);
  });
  test("ignores a damaged cache file", async () => {
    await writeFile(join(stateDir, "probes.json"), '{"oci":{"usable":true}}');
    expect((await resolverOf({ oci: { usable: false }, docker: { usable: true } }).resolve("auto")).name).toBe("docker");
    expect(JSON.parse(await readFile(join(stateDir, "probes.json"), "utf8"))).toHaveProperty("docker");
  });
  test("prefers a stronger proven runtime to an earlier one", async () => {
    const resolver = resolverOf({ oci: { usable: true, isolation: 1 }, remote: { usable: true, isolation: 3 } });
    await resolver.probe("oci");
    await resolver.probe("remote");
    expect((await resolver.resolve("auto")).name).toBe("remote");
  });
  test("auto never picks host, and its error lists every fix", async () => {
    const findings: Finding[] = [{ level: "problem", text: "There is no runc.", fix: "apt-get install runc" }];
    const resolver = resolverOf({ oci: { usable: false, findings }, host: { usable: true, isolation: 0 } });
    await expect(resolver.resolve("auto")).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining("apt-get install runc"),
    });
    expect(probes).toEqual(["oci"]);
  });
  test("tries the fallback last, and never host", async () => {
    const scripts = { oci: { usable: false }, docker: { usable: true }, host: { usable: true } };
    expect((await resolverOf(scripts, { fallbackRuntime: "docker" }).resolve("auto")).name).toBe("docker");
    expect(probes).toEqual(["oci", "docker"]);
    await expect(
      resolverOf({ oci: { usable: false }, host: { usable: true } }, { fallbackRuntime: "host" }).resolve("auto"),
    ).rejects.toMatchObject({
      code: "unavailable",
    });
  });
  test("returns a named runtime unprobed and rejects unknown names with the list", async () => {
    const resolver = resolverOf({ oci: { usable: false }, host: { usable: true } });
    expect((await resolver.resolve("host")).name).toBe("host");
    expect(probes).toEqual([]);
    await expect(resolver.resolve("podmann")).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("oci, host") });
    await expect(resolver.resolve("__proto__")).rejects.toMatchObject({ code: "invalid" });
  });
});
