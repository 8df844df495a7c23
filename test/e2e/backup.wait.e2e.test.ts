import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useCaisson } from "./caisson-process.ts";

const { run, home, base } = useCaisson();

describe("caisson backup", () => {
  test("restores runs, snapshots and tokens from a backup taken while a sandbox works", async () => {
    const folder = join(base(), "project");
    mkdirSync(folder);
    for (const name of ["kept", "deleted"]) writeFileSync(join(folder, name), `${name}\n`);
    const model = join(base(), "model.yaml");
    writeFileSync(model, 'turns: [{ calls: [{ tool: bash, arguments: { command: "rm deleted; echo new > added" } }] }, { say: Done. }]\n');
    const started = await run(["run", "--name", "work", "--model", `scripted:${model}`, "Do it."], { cwd: folder });
    expect(started.code, started.stderr).toBe(0);
    const diff = (await run(["diff", "work"], { cwd: folder })).text;
    expect(diff).toContain("added");
    expect(diff).toContain("deleted");
    await run([
      "exec",
      "--keep",
      "--name",
      "busy",
      "--no-workspace",
      "--detach",
      "--",
      "sh",
      "-c",
      "while :; do date >> /workspace/times; done",
    ]);
    expect((await run(["sandbox", "snapshot", "busy", "--name", "moment"])).code).toBe(0);
    const token = (await run(["token", "create", "ci"])).text.trim();

    const file = join(base(), "all.tar.gz");
    const backup = await run(["backup", file, "--json"]);
    expect([backup.code, backup.stderr]).toEqual([0, ""]);
    expect((await run(["backup", file])).stderr).toContain("already exists");
    expect((await run(["restore", file])).stderr).toContain("is in use");
    await run(["rm", "--yes", "busy"]);

    renameSync(home(), `${home()}-before`);
    mkdirSync(home(), { mode: 0o700 });
    try {
      writeFileSync(join(base(), "none.tar"), "not a backup");
      expect((await run(["restore", join(base(), "none.tar")])).code).toBe(125);
      expect(existsSync(join(home(), "log.db"))).toBe(false);
      const restored = await run(["restore", file]);
      expect(restored.code, restored.stderr).toBe(0);
      expect((await run(["diff", "work"], { cwd: folder })).text).toBe(diff);
      expect((await run(["logs", "--check"])).code).toBe(0);
      expect((await run(["token", "ls"])).text).toContain(token.slice(0, token.lastIndexOf("_")));
      expect((await run(["exec", "--snapshot", "moment", "--", "sh", "-c", "test -s /workspace/times && echo there"])).text).toContain(
        "there",
      );
      expect((await run(["apply", "work"], { cwd: folder })).code).toBe(0);
      expect([existsSync(join(folder, "deleted")), existsSync(join(folder, "added"))]).toEqual([false, true]);
    } finally {
      rmSync(`${home()}-before`, { recursive: true, force: true });
    }
  });
});
