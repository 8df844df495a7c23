import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ignoring } from "../../src/lib/failures.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { mountSmallDisk, type SmallDisk } from "../support/small-disk.ts";

const cli = useRunsCli();
const asRoot = process.getuid?.() === 0;
const bash = (command: string) => ({ tool: "bash", arguments: { command } });

async function serve(home: string, options: readonly string[] = []) {
  const station = cli.start(["up", "--port", "0", "--json", "--no-token", ...options], { home });
  await station.output(/"pid"/);
  return station;
}

const namesIn = (path: string): string[] => (statSync(path, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(path) : []);

async function newHome(name: string): Promise<string> {
  const home = join(cli.base(), name);
  await mkdir(home, { mode: 0o700 });
  return home;
}

describe.runIf(asRoot)("a machine whose process 1 does not reap", () => {
  test("lets `down` end the station, although its process remains as a zombie", async () => {
    const home = await newHome("zombie");
    const init: ChildProcess = spawn("unshare", ["--pid", "--fork", "--mount-proc", "sh", "-c", "echo up; exec sleep 600"]);
    await once(init.stdout as NonNullable<typeof init.stdout>, "data");
    const pid = readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, "utf8").trim();
    const inside = (argv: readonly string[]) =>
      execFileSync("nsenter", ["-t", pid, "-p", "-m", ...cli.commandLine().split(" "), ...argv], {
        encoding: "utf8",
        env: cli.environment({ home }),
        stdio: ["ignore", "pipe", "inherit"],
      });
    try {
      inside(["up", "--detach", "--port", "0", "--no-token"]);
      const station = JSON.parse(inside(["status", "--json"])) as { pid: number };
      inside(["down"]);
      const stat = execFileSync("nsenter", ["-t", pid, "-p", "-m", "cat", `/proc/${station.pid}/stat`], { encoding: "utf8" });
      expect(stat).toContain(") Z ");
    } finally {
      process.kill(Number(pid), "SIGKILL");
      await once(init, "exit");
    }
  });
});

describe("a process that is killed while it replaces a file", () => {
  const hasStrace = ["/usr/bin/strace", "/bin/strace"].some(existsSync);
  test.runIf(hasStrace)("leaves a temporary file, which the next station removes", async () => {
    const home = await newHome("killed");
    const model = await cli.script({ turns: [{ say: "Done." }] });
    const folders = () => ["sessions", "sandboxes"].flatMap((name) => namesIn(join(home, name)).map((id) => join(home, name, id)));
    const left = () => [home, join(home, "station"), ...folders()].flatMap(namesIn).filter((name) => name.endsWith(".tmp"));
    const [node = "", program = ""] = cli.commandLine().split(" ");
    const command = ["run", "x", "--no-workspace", "--session", "work", "--model", model];
    expect((await cli.run(command, { home })).code).toBe(0);
    // The first file that the run replaces. Filtering by its path misses `rename`, which names it second.
    const argv = [
      "-f",
      "-qq",
      "-o",
      "/dev/null",
      "-e",
      "inject=rename,renameat,renameat2:error=EIO:signal=SIGKILL:when=1",
      node,
      program,
      ...command,
    ];
    await once(spawn("strace", argv, { env: cli.environment({ home }), stdio: "ignore" }), "exit");
    expect(left()).toEqual([expect.stringMatching(/^session\.json\..*\.tmp$/)]);
    const station = await serve(home);
    await expect.poll(left).toEqual([]);
    station.child.kill("SIGTERM");
    await station.ended;
  });
});

/** Returns false as long as the stall guard of a killed station runs. */
function unmounted(disk: SmallDisk): boolean {
  try {
    disk.remove();
    return true;
  } catch {
    return false;
  }
}

/** Returns what a process waits for in the kernel, for the message of a failed test. */
function waitOf(pid: number | undefined): string {
  const read = (name: string) => ignoring("only a message needs it", () => readFileSync(`/proc/${pid}/${name}`, "utf8").trim());
  return `the station waits for ${read("wchan")}: ${read("stack")}`;
}

describe.runIf(asRoot)("a station whose file system was aborted", () => {
  test("names the reason, and can be ended with `down`", async () => {
    const disk = mountSmallDisk();
    const home = join(disk.folder, "home");
    await mkdir(home, { mode: 0o700 });
    // Ready sandboxes would stay on the file system and block the unmount.
    const station = await serve(home, ["--ready", "0"]);
    try {
      const model = await cli.script({ turns: [{ say: "Done." }] });
      // The station has opened its log.
      expect((await cli.run(["ps"], { home })).code).toBe(0);
      execFileSync("mount", ["-o", "remount,abort", disk.folder]);
      const run = await cli.run(["run", "x", "--no-workspace", "--model", model], { home });
      expect(run.code).not.toBe(0);
      expect(run.stderr, waitOf(station.child.pid)).toMatch(/the file system is read-only|the disk failed/);
      expect(run.stderr).toContain("dmesg");
      const down = await cli.run(["down"], { home });
      expect(down.code, down.stderr).toBe(0);
    } finally {
      station.child.kill("SIGKILL");
      await station.ended;
      await expect.poll(() => unmounted(disk)).toBe(true);
    }
  });
});

describe("commands that work through a station", () => {
  test("survive its restart, as does the run that they watch", async () => {
    const home = await newHome("restart");
    const model = await cli.script({ turns: [{ calls: [bash("echo up; sleep 3; echo over")] }, { say: "Done." }] });
    const first = await serve(home);
    const running = cli.start(["run", "x", "--no-workspace", "--model", model, "--json"], { home });
    await running.event("tool.streamed");
    first.child.kill("SIGTERM");
    await first.ended;
    const second = await serve(home);
    const { code, events, stderr } = await running.ended;
    expect(code, stderr).toBe(0);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
    expect(events.at(-1)?.type).toBe("run.ended");
    second.child.kill("SIGTERM");
    await second.ended;
  });
});
