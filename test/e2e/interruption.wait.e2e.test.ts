import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { advanceTimers, HELD_STEP_MS, holdTimers } from "../support/held-timers.ts";
import { stationMode } from "../support/station-modes.ts";
import { expectNothingLeftAfterEach, type Started, tracesOf, until, useCaisson } from "./caisson-process.ts";

const { run, start, sandboxes, base } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

/** Waits until the command writes, and returns the sandbox's id. */
async function running({ child }: Started): Promise<string> {
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  const [id] = sandboxes();
  if (id === undefined) throw new Error("the command runs, but there is no sandbox");
  return id;
}
/** Returns delays spread over the life of a command, measured on this machine as fast as it is now. */
async function moments(count: number): Promise<number[]> {
  const began = performance.now();
  await run(["exec", "--", "true"]);
  const wholeMs = performance.now() - began;
  return Array.from({ length: count }, (_, index) => Math.round(((index + 1) * wholeMs) / count));
}

/** Returns the kernel function in which each thread of a process waits. */
function waitsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((task) => {
    try {
      return readFileSync(`/proc/${pid}/task/${task}/wchan`, "latin1");
    } catch {
      // The thread has just ended.
      return "";
    }
  });
}

/** Waits for the station, which finishes a command's work even if the command could not wait for it. */
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

  test("lets a program clean up, and keeps its exit code", async () => {
    const started = start(["exec", "--", "sh", "-c", 'trap "echo bye; exit 7" INT; echo up; while :; do sleep 0.05; done']);
    await running(started);
    started.child.kill("SIGINT");
    expect(await started.finished).toMatchObject({ code: 7, text: "up\nbye\n" });
  });

  describe("a program that ignores signals", () => {
    /** Starts the program with the command's timers held, and waits until it has refused SIGINT. */
    const refuse = async () => {
      const program = 'trap "echo no" INT TERM HUP; echo up; while :; do echo on; sleep 0.05; done';
      const started = start(["exec", "--", "sh", "-c", program], { env: holdTimers("exec", base()) });
      onTestFinished(() => void started.child.kill("SIGKILL"));
      let text = "";
      started.child.stdout?.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      const linesOf = (word: string) => text.split("\n").filter((line) => line === word).length;
      await until("the program is up", () => linesOf("up") > 0);
      // A sandbox that is being removed has another name.
      const ids = sandboxes().filter((id) => id.startsWith("sb_"));
      started.child.kill("SIGINT");
      await until("the program has refused the signal", () => linesOf("no") > 0);
      return { ...started, ids, linesOf };
    };

    test("has three seconds to end before it is killed", async () => {
      const { child, finished, ids, linesOf } = await refuse();
      await advanceTimers(child);
      const before = linesOf("on");
      await until(`it continues after ${HELD_STEP_MS} ms`, () => linesOf("on") > before + 5);
      expect(child.exitCode).toBeNull();
      await advanceTimers(child);
      expect((await finished).code).toBe(130);
      expect(ids.flatMap(tracesOf)).toEqual([]);
    });

    test("is killed at a second signal, before any timer fires", async () => {
      const { child, finished, ids } = await refuse();
      // Not earlier: two signals at once may arrive in either order, or as one.
      child.kill("SIGTERM");
      expect((await finished).code).toBe(130);
      expect(ids.flatMap(tracesOf)).toEqual([]);
    });
  });

  test("ends even if the reader of its output is stuck", async () => {
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

  test("leaves nothing behind after Ctrl-C at any moment", async () => {
    for (const afterMs of await moments(14)) {
      const { child, finished } = start(["exec", "--", "sleep", "300"]);
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      child.kill("SIGINT");
      const { code, signal, stderr } = await finished;
      // Before Node has started, the shell or Node itself dies of the signal, and nothing was started.
      expect(code === 130 || signal === "SIGINT", `after ${afterMs} ms: ${code} ${signal} ${stderr}`).toBe(true);
      await stationIsDone();
      expect(sandboxes(), `after ${afterMs} ms`).toEqual([]);
    }
  });

  test("lets the next command remove what kill -9 left", async () => {
    const started = start(talking);
    const id = await running(started);
    started.child.kill("SIGKILL");
    await started.finished;
    // A station notices at once that its caller has disconnected.
    if (stationMode === "none") expect(sandboxes()).toEqual([id]);
    await stationIsDone();
    expect((await run(["sandbox", "ls"])).text).toMatch(/^No sandboxes\. /);
    expect(sandboxes()).toEqual([]);
    expect(tracesOf(id)).toEqual([]);
  });

  test("lets the next command remove a half-created sandbox", async () => {
    for (const afterMs of await moments(10)) {
      const { child, finished } = start(["exec", "--", "sleep", "300"]);
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      child.kill("SIGKILL");
      await finished;
      // A process that was killed before it named the sandbox leaves a folder without an id.
      const left = sandboxes().filter((name) => name.startsWith("sb_"));
      await run(["sandbox", "ls"]);
      await stationIsDone();
      expect(sandboxes(), `after ${afterMs} ms`).toEqual([]);
      for (const id of left) expect(tracesOf(id), `after ${afterMs} ms`).toEqual([]);
    }
  });

  test("spares a kept sandbox when its creator is killed with -9", async () => {
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

  test("ends the command in a kept sandbox, but not the sandbox", async () => {
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

  test("leaves no temporary file in the store", () => {
    expect(sandboxes()).toEqual([]);
  });
});
