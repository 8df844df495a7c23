import { once } from "node:events";
import { readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type Going, type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const stations: Going[] = [];
// Registered later, so the stations end before their state folders are removed.
afterAll(async () => {
  for (const { child, ended } of stations) {
    child.kill("SIGTERM");
    await ended;
  }
});

interface Pool {
  waiting: number;
  size: number;
  ready: number;
  fresh: number;
}
const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
const look = "cat notes ~/.config /etc/caisson-test 2>&1; ls";
const script = {
  turns: [
    bash("echo one > notes; echo mine > ~/.config"),
    bash("echo two > notes; echo other > ~/.config; (echo root | sudo tee /etc/caisson-test) 2>&1"),
    { say: "Done." },
  ],
  tasks: [{ contains: ["look again"], turns: [bash(look), { say: "Seen." }] }],
};

/** Starts a station on a new state folder, with commands that go through it. */
async function startStation(name: string, env: Record<string, string> = {}) {
  const home = join(cli.base(), name);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci", ociRuntime: "crun" }));
  const station = cli.start(["up", "--port", "0", "--json", "--no-token", "--ready", "2"], { home, env });
  stations.push(station);
  await station.output(/"pid"/);
  const ok = async (argv: readonly string[], cwd = cli.work()) => {
    const result = await cli.run(argv, { home, cwd });
    expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
    return result;
  };
  const pool = async () => (JSON.parse((await ok(["stats", "--json"])).text) as { pool: Pool }).pool;
  const isFull = async () => void (await expect.poll(pool).toMatchObject({ waiting: 2, size: 2 }));
  /** Does the work with a full pool, and returns where its sandboxes came from. */
  const counted = async (work: () => Promise<unknown>) => {
    await isFull();
    const before = await pool();
    await work();
    const after = await pool();
    return { ready: after.ready - before.ready, fresh: after.fresh - before.fresh };
  };
  return { home, station, ok, pool, isFull, counted };
}

/** Returns what `look` printed last in a run. */
async function seen(run: string, home: string): Promise<string> {
  const events = await cli.events(run, { home });
  const ended = events.findLast((event) => event.type === "tool.ended");
  return ended?.type === "tool.ended" ? ended.data.text : "";
}
const runOf = (events: readonly LoggedEvent[]) => {
  const created = events.find(({ type }) => type === "run.created");
  return created?.type === "run.created" ? created.data.run : "";
};

test("runs, later turns, forks and templates come from the pool", { timeout: 300_000 }, async () => {
  const { home, station, ok, isFull, counted } = await startStation("pool");
  const cwd = await cli.folder({ "a.txt": "zero\n" });
  const model = await cli.script(script);
  let run = "";
  const start = (task: string, ...more: string[]) => ok(["run", task, "--json", "--model", model, ...more], cwd);
  expect(
    await counted(async () => {
      run = runOf((await start("work")).events);
    }),
  ).toEqual({ ready: 1, fresh: 0 });

  const lookAgain = async (...more: string[]) => {
    let text = "";
    const counts = await counted(async () => {
      text = await seen(runOf((await start("look again", ...more)).events), home);
    });
    return { counts, text };
  };
  const pooled = { ready: 1, fresh: 0 };
  const later = await lookAgain("--session", run);
  expect(later).toEqual({ counts: pooled, text: expect.stringMatching(/^two\nother\n/) });
  // The points were taken in sandboxes that had waited.
  expect((await ok(["show", `${run}@1`, "notes"], cwd)).text).toBe("one\n");
  await ok(["session", "fork", `${run}@1`, "--name", "copy"], cwd);
  expect(await lookAgain("--session", "copy")).toEqual({ counts: pooled, text: expect.stringMatching(/^one\nmine\n/) });
  const rewound = runOf((await start("work")).events);
  await ok(["rewind", rewound, "--to", "1"], cwd);
  expect(await lookAgain("--session", rewound)).toEqual({ counts: pooled, text: expect.stringMatching(/^one\nmine\n/) });

  // Root has to be allowed from the start, so the first run with it teaches the pool.
  expect(await counted(() => start("work", "--allow-root"))).toEqual({ ready: 0, fresh: 1 });
  const counts = await counted(async () => {
    run = runOf((await start("work", "--allow-root")).events);
  });
  expect(counts).toEqual(pooled);
  const asRoot = await lookAgain("--session", run, "--allow-root");
  expect(asRoot).toEqual({ counts: pooled, text: expect.stringMatching(/^two\nother\nroot\n/) });
  const project = await cli.folder({ Dockerfile: "FROM host\nRUN echo template > /etc/caisson-test\n" });
  await ok(["template", "build", project, "--name", "pooled"]);
  // No sandbox waits for this template: it gets its files when it is claimed.
  expect(await lookAgain("--template", "pooled")).toEqual({ counts: pooled, text: expect.stringContaining("template\n") });

  await isFull();
  station.child.kill("SIGTERM");
  expect((await station.ended).code).toBe(0);
  expect(readdirSync(join(home, "sandboxes"))).toEqual([]);
});

test.each(["pool.claimed:before", "pool.claimed:after"])(
  "a run continues after its station was killed at %s",
  { timeout: 240_000 },
  async (point) => {
    const name = point.replace(":", "-");
    const first = await startStation(name, { CAISSON_CRASH_AT: point });
    await first.isFull();
    const [model, cwd] = [await cli.script(script), await cli.folder({ "a.txt": "zero\n" })];
    const exited = once(first.station.child, "exit");
    const going = cli.start(["run", "work", "--detach", "--json", "--model", model], { home: first.home, cwd });
    await exited;
    await going.ended;
    const second = await startStation(name);
    const list = async () => JSON.parse((await second.ok(["ps", "--all", "--json"])).text) as { run: string; status: string }[];
    await expect.poll(async () => (await list()).map(({ status }) => status)).toEqual([expect.stringMatching(/^(?:ended|done)/)]);
    const [run] = await list();
    expect((await cli.events(run?.run ?? "", { home: second.home })).filter(({ type }) => type === "tool.ended")).toHaveLength(2);
    await second.isFull();
    second.station.child.kill("SIGTERM");
    expect((await second.station.ended).code).toBe(0);
    expect(readdirSync(join(second.home, "sandboxes"))).toEqual([]);
  },
);
