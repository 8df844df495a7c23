import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, test } from "vitest";
import { processOne } from "../support/process-one.ts";
import { type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";
import { isThroughStation } from "../support/station-modes.ts";
import { tracesOf } from "./caisson-process.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const bash = (command: string) => ({ tool: "bash", arguments: { command } });
const idOf = (events: readonly LoggedEvent[]): string => (events[0]?.type === "run.created" ? events[0].data.run : "");
const numbers = Array.from({ length: 30 }, (_, at) => `${at + 1}`).join("\n");

describe("a command that was running when its driver died", () => {
  test("is attached to again, runs once, and keeps its whole output", async ({ skip }) => {
    skip(isThroughStation, "the station drives the run; crash-station.wait.e2e.test.ts tests killed stations");
    const folder = await cli.folder();
    const model = await cli.script({
      turns: [
        { calls: [bash("echo began >> counter; for i in $(seq 1 30); do echo $i; sleep 0.1; done")] },
        { say: "Done.", expect: { news: [numbers] } },
      ],
    });
    const going = cli.start(["run", "count", "--repo", folder, "--model", model, "--json"]);
    await going.event("tool.streamed");
    going.child.kill("SIGKILL");
    const killedMs = Date.now();
    const first = await going.ended;
    const id = idOf(first.events);
    const again = cli.start(["resume", id, "--json"]);
    await again.event("run.claimed");
    const recoveryMs = Date.now() - killedMs;
    const second = await again.ended;
    console.log(`kill -9 to the run continuing: ${recoveryMs} ms, the program's own start included`);
    expect(second.code, second.text.slice(-1000)).toBe(0);
    const events = await cli.events(id);
    expect(events.filter((event) => event.type === "tool.started")).toHaveLength(1);
    expect(events.filter((event) => event.type === "run.sandboxed")).toHaveLength(1);
    expect(readFileSync(join(cli.home(), "sessions", id, "layer", "upper", "counter"), "utf8")).toBe("began\n");
  });

  test("is lost if its sandbox died, and the agent continues in a new one", async () => {
    const folder = await cli.folder();
    const model = await cli.script({
      turns: [
        { calls: [bash("echo kept > file.txt")] },
        { calls: [bash("echo up; sleep 60")] },
        { calls: [bash("cat file.txt")], expect: { news: ["The sandbox died during this call"] } },
        { say: "Still here.", expect: { news: ["kept"] } },
      ],
    });
    const going = cli.start(["run", "survive", "--repo", folder, "--model", model, "--json"]);
    const { data } = await going.event("run.sandboxed");
    await going.event("tool.streamed");
    killProcessOne(data.sandbox);
    const done = await going.ended;
    expect(done.code, done.text.slice(-1500)).toBe(0);
    expect(done.events.flatMap((event) => (event.type === "tool.ended" ? [event.data.outcome] : []))).toEqual(["ok", "lost", "ok"]);
    expect(done.events.flatMap((event) => (event.type === "run.sandboxed" ? [event.data.why] : []))).toEqual(["start", "lost"]);
  });

  test("is lost if its sandbox died with the driver", async ({ skip }) => {
    skip(isThroughStation, "the station drives the run; crash-station.wait.e2e.test.ts tests killed stations");
    const folder = await cli.folder();
    const model = await cli.script({
      turns: [{ calls: [bash("echo kept > file.txt; echo up; sleep 60")] }, { say: "Told.", expect: { news: ["The sandbox died"] } }],
    });
    const going = cli.start(["run", "survive", "--repo", folder, "--model", model, "--json"]);
    const { data } = await going.event("run.sandboxed");
    await going.event("tool.streamed");
    going.child.kill("SIGKILL");
    killProcessOne(data.sandbox);
    const id = idOf((await going.ended).events);
    const resumed = await cli.run(["resume", id, "--json"]);
    expect(resumed.code, resumed.text.slice(-1500)).toBe(0);
    const events = await cli.events(id);
    expect(events.find((event) => event.type === "tool.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect(readFileSync(join(cli.home(), "sessions", id, "layer", "upper", "file.txt"), "utf8")).toBe("kept\n");
  });
});

test("a dead sandbox of an abandoned run can be removed without a trace", async ({ skip }) => {
  skip(isThroughStation, "the station drives the run; crash-station.wait.e2e.test.ts tests killed stations");
  const model = await cli.script({ turns: [{ calls: [bash("echo up; sleep 60")] }] });
  const going = cli.start(["run", "x", "--no-workspace", "--model", model, "--json"]);
  const { data } = await going.event("run.sandboxed");
  await going.event("tool.streamed");
  going.child.kill("SIGKILL");
  killProcessOne(data.sandbox);
  const id = idOf((await going.ended).events);
  const removed = await cli.run(["sandbox", "rm", data.sandbox, "--yes"]);
  expect(removed.code, removed.stderr).toBe(0);
  expect(tracesOf(data.sandbox)).toEqual([]);
  expect((await cli.run(["stop", id])).code).toBe(0);
});

function killProcessOne(sandbox: string): void {
  const pid = processOne(sandbox);
  if (pid === undefined) throw new Error(`process 1 of ${sandbox} is not to be found`);
  process.kill(pid, "SIGKILL");
}

describe("a damaged state folder", () => {
  test.runIf(process.getuid?.() === 0)("with a full disk gives a clear error, and loses nothing acknowledged", async () => {
    const home = join(cli.base(), "small");
    await mkdir(home);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", home]);
    try {
      const fill = "x".repeat(40_000);
      const turns = Array.from({ length: 150 }, (_, at) => ({
        calls: [{ tool: "write", arguments: { path: "a.txt", content: `${at}${fill}` } }],
      }));
      const folder = await cli.folder();
      const model = await cli.script({ turns });
      const options = { home };
      const run = await cli.run(["run", "fill it", "--repo", folder, "--model", model, "--json", "--max-steps", "1000"], options);
      expect(run.code, run.text.slice(-500)).toBe(125);
      expect(run.text.split("\n").at(-2)).toMatch(/"code":"no_space"/);
      const printed = run.events;
      expect(printed.length).toBeGreaterThan(20);
      execFileSync("mount", ["-o", "remount,size=64m", home]);
      const events = await cli.events(idOf(printed), options);
      expect(events.slice(0, printed.length)).toEqual(printed);
      const stopped = await cli.run(["stop", idOf(printed)], options);
      expect(stopped.code, stopped.stderr).toBe(0);
      expect(cli.sandboxes(home)).toEqual([]);
    } finally {
      await cli.run(["sandbox", "rm", "--all", "--yes"], { home });
      cli.endStation(home);
      execFileSync("umount", ["-l", home]);
    }
  });

  test("with a damaged log tail names it, and other runs stay readable", async () => {
    const home = join(cli.base(), "damaged");
    const model = await cli.script({ turns: [{ calls: [bash("echo a")] }, { say: "Done." }] });
    const run = async () => idOf((await cli.run(["run", "x", "--no-workspace", "--model", model, "--json"], { home })).events);
    const [broken, whole] = [await run(), await run()];
    expect((await cli.run(["logs", "--check"], { home })).text).toBe("The log is intact.\n");
    const database = new DatabaseSync(join(home, "log.db"));
    database.prepare("UPDATE events SET data = '{\"oops\":1}' WHERE stream = ? AND seq = 5").run(`run/${broken}`);
    database.close();
    const checked = await cli.run(["logs", "--check"], { home });
    expect([checked.code, checked.text]).toEqual([1, `run/${broken}: Event 5 is not what was written.\n`]);
    expect(JSON.parse((await cli.run(["logs", "--check", "--json"], { home })).text)).toMatchObject([
      { stream: `run/${broken}`, fromSeq: 5 },
    ]);
    expect((await cli.run(["logs", whole], { home })).code).toBe(0);
    const listed = await cli.run(["ps", "--all", "--json"], { home });
    expect(listed.code, listed.stderr).toBe(0);
    expect(JSON.parse(listed.text).map((row: { run: string; status: string }) => [row.run, row.status])).toEqual(
      expect.arrayContaining([
        [whole, "done"],
        [broken, "damaged"],
      ]),
    );
    const readable = await cli.run(["logs", broken, "--json"], { home });
    expect(readable.events).toHaveLength(4);
    expect(readable.text + readable.stderr).toContain("caisson logs --check");
    const again = new DatabaseSync(join(home, "log.db"));
    again.prepare("UPDATE events SET data = 'no JSON' WHERE stream = ? AND seq = 4").run(`run/${whole}`);
    again.close();
    const cut = await cli.run(["logs", whole, "--json"], { home });
    expect(cut.events).toHaveLength(3);
    expect(cut.text).toMatch(/"code":"internal"[^\n]*is not JSON/);
    const named = JSON.parse((await cli.run(["ps", "--all", "--json"], { home })).text) as { status: string }[];
    expect(named.map((row) => row.status)).toEqual(["damaged", "damaged"]);
  });
});
