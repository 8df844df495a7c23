import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { ShipView } from "../../src/contract/ship/ship-verbs.ts";
import { makeForgeRepository } from "../support/forge-repository.ts";
import { isThroughStation } from "../support/station-modes.ts";
import { useWorkspaceCli } from "../support/workspace-cli.ts";

const { cli, work, ok } = useWorkspaceCli();

beforeEach(({ skip }) => skip(isThroughStation, "the station ships, so killing the command interrupts nothing"));

describe("a ship to a bare repository whose process is killed", () => {
  test.each(["lock.own:before#1", "lock:after#1", "lock.becomes:before#2", "lock.own:removed:before#1"])(
    "at %s finishes with the next command, without a leftover lock or folder",
    async (point) => {
      const folder = await cli.folder();
      const bare = makeForgeRepository(folder, "project", { "a.txt": "one\n" });
      const clone = join(folder, "clone");
      execFileSync("git", ["clone", "--quiet", bare.path, clone], { stdio: "pipe" });
      const { run } = await work("echo two > a.txt", [], clone);
      const ship = ["ship", run, "--to", bare.path, "--without-tests", "it has no tests", "--json"];
      const killed = await cli.run(ship, { cwd: clone, env: { CAISSON_CRASH_AT: point } });
      expect(killed.signal, killed.stderr).toBe("SIGKILL");
      const { id, branch } = JSON.parse((await ok(ship, clone)).text) as ShipView;
      expect(bare.branches()).toContain(branch);
      expect(readdirSync(bare.path, { recursive: true, encoding: "utf8" }).filter((name) => name.includes("lock"))).toEqual([]);
      expect(readdirSync(join(cli.home(), "ships", id)).filter((name) => name.startsWith("work-"))).toEqual([]);
      bare.git("update-ref", `refs/heads/${branch}`, "main");
      bare.git("fsck", "--full", "--strict");
    },
  );
});
