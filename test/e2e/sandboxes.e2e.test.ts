import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { lstat, mkdir, readFile, readlink, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SandboxInfo } from "../../src/contract/sandbox/sandbox.ts";
import { stationMode } from "../support/station-modes.ts";
import { launcher, tracesOf, until, useCaisson } from "./caisson-process.ts";

const { run, sandboxes, base, home } = useCaisson();

async function ok(...argv: string[]): Promise<string> {
  const result = await run(argv);
  expect(result.stderr).toBe("");
  expect(result.code).toBe(0);
  return result.text;
}
const inside = (id: string, script: string) => ok("exec", "--sandbox", id, "--", "sh", "-c", script);

describe("a kept sandbox", () => {
  let id = "";
  beforeAll(async () => {
    id = (await ok("sandbox", "create", "--no-workspace", "--label", "purpose=test", "--allow-root", "--name", "stays")).trim();
  });
  afterAll(async () => {
    await run(["sandbox", "rm", "--all", "--yes"]);
    expect(sandboxes()).toEqual([]);
    expect(tracesOf(id)).toEqual([]);
  });

  test("is listed for people and for programs", async () => {
    expect(await ok("sandbox", "ls")).toMatch(new RegExp(`${id} +stays +\\w+ +running .*yes .*purpose=test`));
    const [info] = JSON.parse(await ok("sandbox", "ls", "--json")) as unknown[];
    expect(SandboxInfo.parse(info)).toMatchObject({ id, keep: true, state: "running", labels: { purpose: "test" } });
  });

  test("can be named or abbreviated, with completion, and its name is unique", async () => {
    for (const word of ["stays", id.slice(0, 14)]) expect(await ok("exec", "--sandbox", word, "--", "echo", "on")).toBe("on\n");
    const duplicate = await run(["sandbox", "create", "--no-workspace", "--name", "stays"]);
    expect(duplicate).toMatchObject({ code: 125, stderr: expect.stringContaining(`the sandbox ${id} already has the name stays`) });
    expect(sandboxes()).toEqual([id]);
    const script = `source <(${launcher} completion bash); COMP_WORDS=(${launcher} exec --sandbox st); COMP_CWORD=3; _caisson; echo "\${COMPREPLY[@]}"`;
    const offered = execFileSync("bash", ["-c", script], { env: { ...process.env, CAISSON_HOME: home() }, encoding: "utf8" });
    expect(offered).toBe("stays\n");
  });

  test("keeps its files and processes between commands", async () => {
    await inside(id, "echo one > /workspace/f; sleep 1234 >/dev/null 2>&1 &");
    expect(await inside(id, "cat /workspace/f")).toBe("one\n");
    expect(await inside(id, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).toContain("sleep 1234");
  });

  test("runs commands with variables, an output limit and another user", async () => {
    expect(await ok("exec", "--sandbox", id, "--env", "A=1", "--user", "root", "--", "sh", "-c", "echo $A; id -u")).toBe("1\n0\n");
    expect((await run(["exec", "--sandbox", id, "--output-max", "2k", "--", "yes"])).code).toBe(153);
  });

  test("has statistics from the host", async () => {
    const [stats] = JSON.parse(await ok("sandbox", "stats", "--json", id)) as Record<string, unknown>[];
    expect(stats).toMatchObject({ id, source: "host", processes: expect.any(Number) });
    expect(await ok("sandbox", "stats", id)).toContain(id);
  });

  test("can be paused and resumed", async () => {
    await ok("sandbox", "pause", id);
    expect(await ok("sandbox", "ls")).toMatch(/paused/);
    const refused = await run(["exec", "--sandbox", id, "--", "true"]);
    expect(refused).toMatchObject({ code: 125, stderr: expect.stringContaining("paused") });
    await ok("sandbox", "resume", id);
    expect(await inside(id, "echo on")).toBe("on\n");
  });

  test("can be snapshotted and forked, and started from a snapshot", async () => {
    await inside(id, "echo before > /workspace/state; echo root > /home/user/made");
    const snapshot = (await ok("sandbox", "snapshot", "--name", "first", id)).trim();
    const forked = (await ok("sandbox", "fork", id)).trim();
    await inside(id, "echo after > /workspace/state");
    expect(await inside(forked, "cat /workspace/state /home/user/made")).toBe("before\nroot\n");
    // In any folder, the snapshot comes with its own workspace, unless another is named.
    const elsewhere = await run(["exec", "--snapshot", snapshot, "--", "cat", "state"], { cwd: tmpdir() });
    expect(elsewhere).toMatchObject({ text: "before\n", stderr: expect.stringContaining("/workspace is the snapshot's own") });
    const named = await run(["exec", "--snapshot", snapshot, "-w", base(), "--", "cat", "state"], { cwd: tmpdir() });
    expect(named).toMatchObject({ code: 1, stderr: expect.not.stringContaining("the snapshot's own") });
    expect(await ok("exec", "--snapshot", snapshot, "--no-workspace", "--", "cat", "/workspace/state", "/home/user/made")).toBe(
      "before\nroot\n",
    );
    expect(await ok("snapshot", "ls")).toMatch(new RegExp(`${snapshot} .*first`));
    await ok("sandbox", "rm", forked, "--yes");
    await ok("snapshot", "rm", "first");
    expect(await ok("snapshot", "ls")).toMatch(/^No snapshots\. /);
    expect(await inside(id, "cat /workspace/state")).toBe("after\n");
  });

  test("runs a command in the background with exec -d, and logs shows its output", async () => {
    const script = "yes line | head -n 500000; echo bad >&2; until [ -e /workspace/go ]; do sleep 0.05; done; echo last; exit 3";
    const job = (await ok("exec", "-d", "--no-workspace", "--name", "job", "--", "sh", "-c", script)).trim();
    expect(sandboxes()).toContain(job);
    await expect.poll(async () => (await run(["logs", "job"])).stderr).toMatch(/bad\ncaisson: it is still running; use -f to follow it/);
    await inside("job", "touch /workspace/go");
    const logs = await run(["logs", "-f", job]);
    expect(logs.text).toMatch(/line\nlast\n$/);
    expect(logs.text.length).toBeGreaterThan(500_000);
    expect(logs.stderr).toMatch(/the first .* of its stdout are no longer stored\n/);
    expect(logs.stderr).toMatch(/it ended with exit code 3 after /);
    await ok("sandbox", "rm", "job");
    expect(tracesOf(job)).toEqual([]);
  });

  test("is created and named by exec --keep", async () => {
    const result = await run(["exec", "--keep", "--no-workspace", "--", "sh", "-c", "echo x > kept"]);
    const keptId = /kept (sb_\w+)/.exec(result.stderr)?.[1] as string;
    expect(await inside(keptId, "cat kept")).toBe("x\n");
    await ok("sandbox", "rm", keptId, "--yes");
    expect(tracesOf(keptId)).toEqual([]);
  });

  describe("cp", () => {
    beforeAll(async () => {
      await mkdir(join(base(), "in", "sub"), { recursive: true });
      await writeFile(join(base(), "in", "sub", "a.bin"), Buffer.alloc(300_000, 1));
      await writeFile(join(base(), "in", "run.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
      await symlink("run.sh", join(base(), "in", "link"));
    });

    test("copies a file in and out", async () => {
      await ok("cp", "in/sub/a.bin", `${id}:/workspace/`);
      await ok("cp", "stays:/workspace/a.bin", "back.bin");
      expect((await readFile(join(base(), "back.bin"))).equals(Buffer.alloc(300_000, 1))).toBe(true);
    });
    test("copies a folder in and out, with modes and links", async () => {
      await ok("cp", "in", `${id}:/workspace/tree`);
      expect(await inside(id, "/workspace/tree/link")).toBe("ran\n");
      await ok("cp", `${id}:/workspace/tree`, "out");
      expect((await readFile(join(base(), "out", "sub", "a.bin"))).length).toBe(300_000);
      expect((await lstat(join(base(), "out", "run.sh"))).mode & 0o777).toBe(0o755);
      expect(await readlink(join(base(), "out", "link"))).toBe("run.sh");
    });
    test("copies a folder into an existing folder", async () => {
      await mkdir(join(base(), "there"), { recursive: true });
      await ok("cp", `${id}:/workspace/tree`, "there");
      expect((await readFile(join(base(), "there", "tree", "sub", "a.bin"))).length).toBe(300_000);
      await ok("cp", "in", `${id}:/workspace/tree`);
      expect(await inside(id, "cat /workspace/tree/in/run.sh")).toContain("echo ran");
    });
    test("copies archives over standard input and output", async () => {
      const archive = execFileSync("tar", ["c", "-C", join(base(), "in"), "."]);
      expect(await run(["cp", "-", `${id}:/workspace/untarred`], { input: archive })).toMatchObject({ code: 0, stderr: "" });
      const back = await run(["cp", `${id}:/workspace/untarred`, "-"]);
      expect(execFileSync("tar", ["t"], { input: back.stdout, encoding: "utf8" })).toContain("a.bin");
    });
    test("never follows a link to a file of the host", async () => {
      await inside(
        id,
        "mkdir -p /workspace/trap && ln -s /etc/shadow /workspace/trap/l && ln -s ../../../etc /workspace/trap/up && echo ok > /workspace/trap/f",
      );
      const result = await run(["cp", `${id}:/workspace/trap`, "trap"]);
      expect(result.code).toBe(0);
      expect(result.stderr).toMatch(/left out l[\s\S]*left out up|left out up[\s\S]*left out l/);
      await expect(lstat(join(base(), "trap", "l"))).rejects.toThrow();
      expect((await run(["cp", `${id}:/workspace/trap/l`, "shadow"])).code).toBe(125);
    });
    test.each([`/workspace/../etc/passwd`, `/${"a".repeat(5000)}`, "/no/such/file"])("rejects the path %.20s", async (path) => {
      expect(await run(["cp", `${id}:${path}`, "never"])).toMatchObject({ code: 125, stderr: expect.stringMatching(/^caisson: /) });
    });
    test("names a missing source", async () => {
      expect(await run(["cp", "no-such", `${id}:/workspace/`])).toMatchObject({ code: 125, stderr: expect.stringContaining("no-such") });
    });
  });

  test("is removed by rm, which fails the second time", async () => {
    const other = (await ok("sandbox", "create", "--no-workspace")).trim();
    await ok("sandbox", "rm", other);
    expect(tracesOf(other)).toEqual([]);
    expect(await run(["sandbox", "rm", other])).toMatchObject({ code: 125, stderr: expect.stringContaining(other) });
  });

  test("is not removed without a confirmation if files in its copy have changed", async () => {
    await mkdir(join(base(), "copied"));
    const changed = (await ok("sandbox", "create", "-w", "copied")).trim();
    await inside(changed, "echo x > new.txt");
    for (const command of [["sandbox", "rm"], ["rm"]]) {
      expect(await run([...command, changed])).toMatchObject({
        code: 125,
        stderr: expect.stringMatching(new RegExp(`^caisson: 1 file changed in ${changed}\\nhint: .*caisson apply.*--yes`)),
      });
    }
    expect(await inside(changed, "cat new.txt")).toBe("x\n");
    await ok("sandbox", "rm", changed, "--yes");
    expect(tracesOf(changed)).toEqual([]);
  });
});

describe("an unusable sandbox", () => {
  const damages: Record<string, (record: string) => string> = {
    "is not JSON": () => "{",
    "is empty, as after a power cut": () => "",
    "has unknown details": (record) => JSON.stringify({ ...JSON.parse(record), details: { from: "elsewhere" } }),
  };

  test.each(Object.entries(damages))("can be removed with its processes if its record %s", async (_what, damage) => {
    for (const words of [
      ["rm", "ID"],
      ["rm", "--all"],
    ]) {
      const id = (await ok("sandbox", "create", "--no-workspace")).trim();
      await inside(id, "sleep 1234 >/dev/null 2>&1 &");
      const record = join(home(), "sandboxes", id, "sandbox.json");
      await writeFile(record, damage(await readFile(record, "utf8")));
      expect(tracesOf(id)).not.toEqual([]);
      await ok("sandbox", ...words.map((word) => (word === "ID" ? id : word)));
      expect(sandboxes()).toEqual([]);
      expect(tracesOf(id)).toEqual([]);
    }
  });

  test("is swept if it is from before a reboot, as is an unfinished snapshot", async () => {
    const old = join(home(), "sandboxes", "sb_aaaaaaaaaaaa");
    const draft = join(home(), "snapshots", ".new-999999999-1-sn_aaaaaaaaaaaa");
    await mkdir(join(old, "layer"), { recursive: true });
    await mkdir(draft, { recursive: true });
    await writeFile(join(old, "sandbox.json"), "");
    await utimes(old, new Date(0), new Date(0));
    await ok("config");
    expect(existsSync(draft)).toBe(true);
    await ok("exec", "--no-workspace", "--", "true");
    // A command sweeps before it ends; a station sweeps from time to time.
    if (stationMode !== "none") await until("the station has swept", () => !existsSync(old) && !existsSync(draft));
    expect([existsSync(old), existsSync(draft)]).toEqual([false, false]);
  });
});
