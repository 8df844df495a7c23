import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { until } from "./caisson-process.ts";

/** Stopped guests, drivers and readers block no waiting command, and commands report what happened. */

const cli = useRunsCli();
afterAll(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const bash = (command: string) => ({ tool: "bash", arguments: { command } });
/** The call's own time limit exceeds the test's, so only what a test does can end it. */
const begun = { tool: "bash", arguments: { command: "echo begun; sleep 60", timeout_ms: 600_000 } };
const sleeping: Script = { turns: [{ calls: [begun] }, { say: "Never." }] };

async function start(script: Script, ...more: string[]) {
  const going = cli.start(["run", "the task", "--no-workspace", "--model", await cli.script(script), "--json", ...more]);
  return { going, id: (await going.event("run.created")).data.run };
}

/** Returns the process id of the guest of a sandbox or of a run's sandbox. */
function guestOf(id: string): number {
  const folder = join(cli.home(), "sandboxes");
  // A name that begins with a dot is a record that is being written.
  const ids = readdirSync(folder).filter((name) => name.startsWith("sb_"));
  const records = ids.map((name) => JSON.parse(readFileSync(join(folder, name, "sandbox.json"), "utf8")));
  const { pid } = records.find((record) => record.id === id || record.spec.labels.run === id).details.guest;
  return pid;
}
/** Counts the sockets of a process besides its standard streams. */
function connectionsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => Number(fd) > 2 && linkOf(join(folder, fd)).startsWith("socket:")).length;
}
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It has just been closed.
    return "";
  }
}
async function startStopped(...more: string[]) {
  const started = await start(sleeping, ...more);
  await started.going.event("tool.streamed");
  const guest = guestOf(started.id);
  process.kill(guest, "SIGSTOP");
  return { ...started, guest };
}
function isStopped(pid: number): boolean {
  return /\) T /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
}

/** How long a driver may take to obey a signal. One that hangs is killed, and has no exit code. */
const DRIVER_END_MS = 30_000;

// These only wait, half a minute each. A wait without an end fails at the test's timeout.
describe("a stopped guest", { timeout: 120_000, concurrent: true }, () => {
  const lost = [
    { type: "tool.ended", data: { outcome: "lost" } },
    { type: "run.ended", data: {} },
  ];

  test("ends with the run's time limit", async () => {
    const { going } = await startStopped("--timeout", "15s", "--on-budget", "stop");
    const { code, events } = await going.ended;
    expect(code).toBe(124);
    expect(events.filter(({ type }) => /^(?:tool|run)\.ended$/.test(type)).slice(-2)).toMatchObject(lost);
    expect(events.at(-1)).toMatchObject({ data: { reason: "timeout" } });
  });

  test("is ended by the run's driver after a stop", async ({ onTestFinished }) => {
    const { going, id } = await startStopped();
    const stopping = cli.start(["stop", id]);
    await going.event("run.stop_requested");
    onTestFinished(() => void stopping.child.kill("SIGKILL"));
    // `stop` ends the sandbox itself if the driver does not. Suspended, it leaves that to the driver.
    stopping.child.kill("SIGSTOP");
    const { code, events } = await going.ended;
    stopping.child.kill("SIGCONT");
    expect(code).toBe(130);
    expect(events.filter(({ type }) => /^(?:tool|run)\.ended$/.test(type)).slice(-2)).toMatchObject(lost);
    expect((await stopping.ended).text).toBe(`${id} stopped\n`);
  });

  test("is not waited for by a driver that gets a signal", async () => {
    const { going, id, guest } = await startStopped();
    going.child.kill("SIGTERM");
    const hanging = setTimeout(() => going.child.kill("SIGKILL"), DRIVER_END_MS);
    const { code } = await going.ended;
    clearTimeout(hanging);
    expect(code).toBe(143);
    // The driver ended before its call did.
    expect(isStopped(guest)).toBe(true);
    expect((await cli.events(id)).at(-1)).toMatchObject({ type: "tool.streamed" });
    expect((await cli.run(["stop", id])).text).toBe(`${id} stopped\n`);
  });

  test("blocks no command that gets a signal to end", async () => {
    const id = (await cli.run(["sandbox", "create"])).text.trim();
    process.kill(guestOf(id), "SIGSTOP");
    const going = cli.start(["exec", "--sandbox", id, "--", "true"]);
    const copying = cli.run(["cp", `${id}:/etc/passwd`, "-"]);
    await until("it has a connection to wait on", () => connectionsOf(going.child.pid as number) > 0);
    going.child.kill("SIGTERM");
    expect((await going.ended).code).toBe(143);
    expect(await copying).toMatchObject({ code: 125, stderr: expect.stringContaining("stopped (SIGSTOP)") });
    expect((await cli.run(["sandbox", "rm", id, "--yes"])).code).toBe(0);
  });
});

test("an interrupted stop reports that the run has not ended yet", async () => {
  const { going, id } = await start(sleeping);
  await going.event("tool.streamed");
  going.child.kill("SIGSTOP");
  const stopping = cli.start(["stop", id]);
  await until("it was asked", async () => (await cli.events(id)).some(({ type }) => type === "run.stop_requested"));
  stopping.child.kill("SIGINT");
  const { code, text, stderr } = await stopping.ended;
  expect([code, text]).toEqual([130, ""]);
  expect(stderr).toContain(`${id} was asked to stop, but has not ended yet`);
  going.child.kill("SIGCONT");
  expect((await going.ended).code).toBe(130);
});

test.each(["SIGTERM", "SIGINT"] as const)("a finished run whose output is not read obeys %s", async (signal) => {
  const script: Script = {
    turns: Array.from({ length: 20 }, (_, n) => ({ calls: [bash(`seq ${n} 6000`)] })).concat([{ say: "Done." } as never]),
  };
  const [program = "", ...args] = cli.commandLine().split(" ");
  const argv = [...args, "run", `until ${signal}`, "--no-workspace", "--model", await cli.script(script), "--json"];
  const child = spawn(program, argv, { cwd: cli.work(), env: cli.environment({}), stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", (code, name) => resolve(name ?? code)));
  const list = async (): Promise<{ task: string; status: string }[]> => JSON.parse((await cli.run(["ps", "--all", "--json"])).text);
  const isOver = async () => (await list()).some(({ task, status }) => task === `until ${signal}` && status === "done");
  await until("the run is over", isOver);
  child.kill(signal);
  expect(await ended).toBe(signal);
  child.stdout?.destroy();
});
