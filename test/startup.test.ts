import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { type StartupFile, startupFiles } from "../scripts/startup-files.ts";

const source = join(import.meta.dirname, "..", "src");

/**
 * Returns everything that loads with these modules of `src` before any of them runs: our modules by their path in
 * `src`, others by name.
 */
function loadedWith(modules: readonly string[]): Set<string> {
  const loaded = new Set<string>();
  const queue = modules.map((module) => join(source, module));
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    const path = relative(source, file);
    if (loaded.has(path)) continue;
    loaded.add(path);
    for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(
      /^(?:import|export)\s+(?!type\b)(?:[\w$*{},\s]+?\bfrom\s*)?"([^"]+)"/gm,
    )) {
      if (specifier.startsWith(".")) queue.push(join(dirname(file), specifier));
      else loaded.add(specifier);
    }
  }
  return loaded;
}

const ofExec = (way: StartupFile["exec"]) =>
  loadedWith(["main.ts", ...startupFiles.filter(({ exec }) => exec === "always" || exec === way).flatMap(({ modules }) => modules)]);
const forExec = () => ofExec("here");
const throughStation = () => ofExec("through a station");
const matching = (loaded: Set<string>, pattern: RegExp) => [...loaded].filter((name) => pattern.test(name));

describe("startup", () => {
  test("bundles modules that exist", () => {
    for (const { modules } of startupFiles) for (const module of modules) expect(existsSync(join(source, module)), module).toBe(true);
    // Otherwise nothing below could fail.
    expect([...forExec()]).toEqual(
      expect.arrayContaining(["runtimes/oci/runtime.ts", "sandbox/guest/link.ts", "zod", "node:child_process"]),
    );
  });

  test("loads two of our files for `--version`", () => {
    // An older Node must get as far as the message that names its version.
    expect([...loadedWith(["caisson.ts"])]).toEqual(["caisson.ts"]);
    expect([...loadedWith(["package-files.ts"])].sort()).toEqual(["node:fs", "node:os", "node:path", "package-files.ts"]);
  });

  test("loads no schemas for help and usage errors", () => {
    expect(matching(loadedWith(["main.ts"]), /^zod$|^(agent|api|client|compose|log|network|runtimes|sandbox|station|workspace)\//)).toEqual(
      [],
    );
  });

  test("loads nothing about agents, runs, logs or workspaces for `exec`", () => {
    // The exceptions are small: the table of model prices, and the choice of a sandbox's secrets.
    expect(
      matching(forExec(), /^(agent|api|client|log|suites|workspace)\/|^contract\/api\/|^station\/(?!sandboxes\/)|^node:sqlite$/).sort(),
    ).toEqual(["agent/model/prices.ts", "station/secrets/with-secrets.ts"]);
  });

  test("loads nothing that serves a network for `exec` without one", () => {
    expect(matching(forExec(), /^network\/(authority|egress|gateway|http|mirror|preview)\/|^node:(http|https|tls|zlib)$/)).toEqual([]);
  });

  test("loads no sandbox code and few Node modules for `exec` through a station", () => {
    expect([...throughStation()]).toEqual(expect.arrayContaining(["client/remote/remote-sandbox.ts", "node:net"]));
    expect(
      matching(
        throughStation(),
        /^(agent|api|log|network|folder-transfer|runtimes|sandbox|suites|workspace)\/|^station\/|^node:(child_process|crypto|fs\/promises|http|https|sqlite|tls|zlib)$/,
      ),
    ).toEqual([]);
    // The station validates its requests. Creating the schemas here took longer than the requests.
    expect(matching(throughStation(), /^(?!node:)(?!.*\.ts$)/)).toEqual([]);
  });

  test("creates no schemas of runs or the configuration for `exec`", () => {
    expect(matching(forExec(), /^contract\/(run|guardian|config\/config\.ts|health\/.*-event\.ts)/)).toEqual([]);
  });

  test("loads no model, tool protocol or unused format for commands about runs", () => {
    const forRuns = loadedWith(["main.ts", ...startupFiles.flatMap(({ modules }) => modules)]);
    expect([...forRuns]).toEqual(expect.arrayContaining(["station/local-station.ts", "log/sqlite/log.ts"]));
    expect(matching(forRuns, /^(?!node:)(?!.*\.ts$)/).sort()).toEqual(["zod"]);
  });

  test("loads nothing that drives runs for commands that ask a station about them", () => {
    const modules = loadedWith(["compose/remote.ts", "compose/client-side-runs.ts", "cli/runs/ps.ts"]);
    expect(matching(modules, /^(agent|api|log|network|folder-transfer|runtimes|sandbox|suites|workspace)\/|^station\//)).toEqual([]);
  });

  test("loads no other runtime for `exec`, and only the package zod", () => {
    expect(matching(forExec(), /^runtimes\/(docker|fake|host)\//)).toEqual([]);
    expect(matching(forExec(), /^(?!node:)(?!.*\.ts$)/)).toEqual(["zod"]);
  });
});
