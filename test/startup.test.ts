import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { type StartupFile, startupFiles } from "../scripts/startup-files.ts";

const source = join(import.meta.dirname, "..", "src");

/** Everything that is loaded with these modules of `src`, before any of them runs: our modules by their path in it, others by their name. */
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

describe("what start-up loads", () => {
  test("the modules that the bundle puts together are there", () => {
    for (const { modules } of startupFiles) for (const module of modules) expect(existsSync(join(source, module)), module).toBe(true);
    // Else nothing below could fail.
    expect([...forExec()]).toEqual(
      expect.arrayContaining(["runtimes/oci/runtime.ts", "sandbox/guest/link.ts", "zod", "node:child_process"]),
    );
  });

  test("`--version` loads two files of ours", () => {
    // An older Node must get as far as the message that says so.
    expect([...loadedWith(["caisson.ts"])]).toEqual(["caisson.ts"]);
    expect([...loadedWith(["package-files.ts"])].sort()).toEqual(["node:fs", "node:os", "node:path", "package-files.ts"]);
  });

  test("what help and a mistake need has no schemas in it", () => {
    expect(matching(loadedWith(["main.ts"]), /^zod$|^(agent|api|client|compose|log|network|runtimes|sandbox|station|workspace)\//)).toEqual(
      [],
    );
  });

  test("`exec` loads nothing of agents, runs, logs or workspaces", () => {
    // The prices of models are a small table; which secrets a sandbox has is a few lines.
    expect(
      matching(forExec(), /^(agent|api|client|log|suites|workspace)\/|^contract\/api\/|^station\/(?!sandboxes\/)|^node:sqlite$/).sort(),
    ).toEqual(["agent/model/prices.ts", "station/secrets/with-secrets.ts"]);
  });

  test("`exec` without a network loads nothing that serves one", () => {
    expect(matching(forExec(), /^network\/(authority|egress|gateway|http|mirror|preview)\/|^node:(http|https|tls|zlib)$/)).toEqual([]);
  });

  test("`exec` through a station loads nothing that a sandbox is made of, and no more of Node than a socket needs", () => {
    expect([...throughStation()]).toEqual(expect.arrayContaining(["client/station/remote-sandbox.ts", "node:net"]));
    expect(
      matching(
        throughStation(),
        /^(agent|api|log|network|remote|runtimes|sandbox|suites|workspace)\/|^station\/|^node:(child_process|crypto|fs\/promises|http|https|sqlite|tls|zlib)$/,
      ),
    ).toEqual([]);
    // The station checks what it is asked; to make the schemas here took longer than all that it is asked.
    expect(matching(throughStation(), /^(?!node:)(?!.*\.ts$)/)).toEqual([]);
  });

  test("`exec` makes no schemas of runs, or of what can be configured", () => {
    expect(matching(forExec(), /^contract\/(run.*|config|guardian.*|health.*-event)\.ts$/)).toEqual([]);
  });

  test("a command about runs loads no model, no protocol of tools and no format that it has no use for", () => {
    const forRuns = loadedWith(["main.ts", ...startupFiles.flatMap(({ modules }) => modules)]);
    expect([...forRuns]).toEqual(expect.arrayContaining(["station/local-station.ts", "log/sqlite/log.ts"]));
    expect(matching(forRuns, /^(?!node:)(?!.*\.ts$)/).sort()).toEqual(["zod"]);
  });

  test("one that asks a station about runs loads nothing that they are driven by", () => {
    const asked = loadedWith(["compose/remote.ts", "compose/callers-runs.ts", "cli/runs/ps.ts"]);
    expect(matching(asked, /^(agent|api|log|network|remote|runtimes|sandbox|suites|workspace)\/|^station\//)).toEqual([]);
  });

  test("`exec` loads no other runtime, and of packages only zod", () => {
    expect(matching(forExec(), /^runtimes\/(docker|fake|host)\//)).toEqual([]);
    expect(matching(forExec(), /^(?!node:)(?!.*\.ts$)/)).toEqual(["zod"]);
  });
});
