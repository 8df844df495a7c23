import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { stationMode } from "../support/station-modes.ts";
import { expectNothingLeftAfterEach, type Started, tracesOf, until, useCaisson } from "./caisson-process.ts";

const { run, start, sandboxes } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

/** Waits until the command writes, and gives the sandbox's id. */
async function running({ child }: Started): Promise<string> {
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  const [id] = sandboxes();
  if (id === undefined) throw new Error("the command runs, but there is no sandbox");
  return id;
}
/** Moments spread over the life of a command on this machine, as fast as it is now. */
async function moments(count: number): Promise<number[]> {
  const began = performance.now();
  await run(["exec", "--", "true"]);
  const wholeMs = performance.now() - began;
  return Array.from({ length: count }, (_, index) => Math.round(((index + 1) * wholeMs) / count));
}

/** What the threads of a process wait for in the kernel. */
function waitsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((task) => {
    try {
      return readFileSync(`/proc/${pid}/task/${task}/wchan`, "latin1");
    } catch {
      // It has just ended.
      return "";
    }
  });
}

/** What a command makes a station do goes on without the command, which may not have been able to wait for it. */
async function stationIsDone(): Promise<void> {
  if (stationMode !== "none") await until("the station has removed it", () => sandboxes().length === 0);
}

const talking = ["exec", "--", "sh", "-c", "echo up; sleep 300 & sleep 300"];

describe("interruption", () => {
  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("%s ends the command and removes the sandbox", async (signal, code) => {
    const started = start(talking);
    const id = await running(started);
    started.child.kill(signal);
    expect((await started.finished).code).toBe(code);
    expect(tracesOf(id)).toEqual([]);
  });

  test("a program may tidy up, and its exit code counts", async () => {
    const started = start(["exec", "--", "sh", "-c", 'trap "echo bye; exit 7" INT; echo up; while :; do sleep 0.05; done']);
    await running(started);
    started.child.kill("SIGINT");
    expect(await started.finished).toMatchObject({ code: 7, text: "up\nbye\n" });
  });

  test("a program that will not end is ended; a second signal is not kept waiting", async () => {
    const ids = new Set<string>();
    /** Resolves with how long it took from the last signal on. */
    const refusing = async (...signals: NodeJS.Signals[]) => {
      const { child, finished } = start(["exec", "--", "sh", "-c", 'trap "echo no" INT TERM HUP; echo up; while :; do sleep 0.05; done']);
      await new Promise((resolve) => child.stdout?.once("data", resolve));
      // One that is just being removed has another name.
      for (const id of sandboxes()) if (id.startsWith("sb_")) ids.add(id);
      let began = 0;
      for (const signal of signals) {
        // The first has arrived inside before the second is sent: two at once may come in either order, or as one.
        const refused = new Promise((resolve) => child.stdout?.once("data", resolve));
        began = performance.now();
        child.kill(signal);
        await Promise.race([refused, finished]);
      }
      expect((await finished).code).toBe(130);
      return performance.now() - began;
    };
    const [patientMs, hurriedMs] = await Promise.all([refusing("SIGINT"), refusing("SIGINT", "SIGTERM")]);
    expect(patientMs).toBeGreaterThan(2_900);
    expect(hurriedMs).toBeLessThan(patientMs);
    expect([...ids].flatMap(tracesOf)).toEqual([]);
  });

  test("a reader that takes nothing does not keep us from ending", async () => {
    const { child, finished } = start(["exec", "--", "yes"]);
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    child.stdout?.pause();
    await until("a write is stuck", () =>
      waitsOf(child.pid as number).some((wait) => /pipe_write|sock_alloc_send|unix_stream_sendmsg|sock_wait_for_wmem/.test(wait)),
    );
    child.kill("SIGINT");
    child.kill("SIGINT");
    await new Promise((resolve) => child.once("exit", resolve));
    child.stdout?.resume();
    const { code, signal } = await finished;
    expect(code === 130 || signal === "SIGINT").toBe(true);
  });

  test("Ctrl-C at any moment leaves nothing behind", async () => {
    for (const afterMs of await moments(14)) {
      const { child, finished } = start(["exec", "--", "sleep", "300"]);
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      child.kill("SIGINT");
      const { code, signal, stderr } = await finished;
      // Before Node is up the shell or Node itself dies of the signal: nothing was begun then.
      expect(code === 130 || signal === "SIGINT", `after ${afterMs} ms: ${code} ${signal} ${stderr}`).toBe(true);
      await stationIsDone();
      expect(sandboxes(), `after ${afterMs} ms`).toEqual([]);
    }
  });

  test("the next command removes what kill -9 left", async () => {
    const started = start(talking);
    const id = await running(started);
    started.child.kill("SIGKILL");
    await started.finished;
    // A station knows at once that its caller is gone.
    if (stationMode === "none") expect(sandboxes()).toEqual([id]);
    await stationIsDone();
    expect((await run(["sandbox", "ls"])).text).toMatch(/^No sandbox\. /);
    expect(sandboxes()).toEqual([]);
    expect(tracesOf(id)).toEqual([]);
  });

  test("kill -9 in the middle of making one is swept, too", async () => {
    for (const afterMs of await moments(10)) {
      const { child, finished } = start(["exec", "--", "sleep", "300"]);
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      child.kill("SIGKILL");
      await finished;
      // One that was killed before it had a name leaves a folder that is no sandbox's yet.
      const left = sandboxes().filter((name) => name.startsWith("sb_"));
      await run(["sandbox", "ls"]);
      await stationIsDone();
      expect(sandboxes(), `after ${afterMs} ms`).toEqual([]);
      for (const id of left) expect(tracesOf(id), `after ${afterMs} ms`).toEqual([]);
    }
  });

  test("a kept sandbox outlives its creator's kill -9", async () => {
    const created = await run(["sandbox", "create"]);
    const id = created.text.trim();
    const { child, finished } = start(["exec", "--sandbox", id, "--", "sh", "-c", "echo up; sleep 300"]);
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    child.kill("SIGKILL");
    await finished;
    expect((await run(["exec", "--sandbox", id, "--", "echo", "alive"])).text).toBe("alive\n");
    expect((await run(["sandbox", "rm", id, "--yes"])).code).toBe(0);
    expect(tracesOf(id)).toEqual([]);
  });

  test("an interrupted command in a kept sandbox leaves the sandbox, not the command", async () => {
    const id = (await run(["sandbox", "create"])).text.trim();
    const { child, finished } = start(["exec", "--sandbox", id, "--", "sh", "-c", "echo up; sleep 321"]);
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    child.kill("SIGINT");
    expect((await finished).code).toBe(130);
    expect((await run(["exec", "--sandbox", id, "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"])).text).not.toContain(
      "sleep 321",
    );
    await run(["sandbox", "rm", id, "--yes"]);
  });

  test("no temporary file of the store is left", () => {
    expect(sandboxes()).toEqual([]);
  });
});
