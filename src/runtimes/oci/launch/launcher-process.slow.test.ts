import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { createLauncher } from "./launcher.ts";

const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
const program = { guestPath, path: "/usr/bin:/bin" };
const inside = (script: string) => ["sh", "-c", script].map((argument) => ["argument", argument] as const);

/** Returns the launch servers that a process has started. */
function servers(parent = process.pid): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
        const [state, above] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return state !== "Z" && Number(above) === parent && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("\0launches\0");
      } catch {
        return false;
      }
    });
}

describe("the launch server", () => {
  it("starts all launches, one by one or together, and ends when unused", async () => {
    const before = servers();
    const launch = createLauncher(program);
    expect(await launch({ what: "inside", plan: inside("echo $PPID") })).toEqual([expect.stringMatching(/^\d+$/)]);
    const outputs = await Promise.all(Array.from({ length: 5 }, () => launch({ what: "inside", plan: inside("echo $PPID") })));
    expect(new Set(outputs.flat()).size).toBe(1);
    expect(servers()).toContain(Number(outputs.flat()[0]));
    await expect.poll(() => servers().filter((pid) => !before.includes(pid))).toEqual([]);
    expect(await launch({ what: "inside", plan: inside("echo again") })).toEqual(["again"]);
  });

  it("distinguishes a failure, a cancellation and a timeout", async () => {
    const launch = createLauncher(program);
    await expect(launch({ what: "remove", plan: [["remove", "relative"]] })).resolves.toEqual([]);
    await expect(launch({ what: "inside", plan: [] })).rejects.toMatchObject({
      code: "internal",
      message: expect.stringContaining("nothing to run"),
    });
    const cancel = new AbortController();
    const cancelled = launch({
      what: "inside",
      plan: inside("echo there; exec sleep 600"),
      signal: cancel.signal,
      onLine: () => cancel.abort(),
    });
    await expect(cancelled).rejects.toMatchObject({ code: "cancelled" });
    await expect(launch({ what: "inside", plan: inside("exec sleep 600"), timeoutMs: 50 })).rejects.toThrow();
  });

  it("fails its launches when killed, and another server starts the next", async () => {
    const launch = createLauncher(program);
    let server = 0;
    const waiting = launch({
      what: "inside",
      plan: inside("echo $PPID; exec sleep 600"),
      onLine(line) {
        server = Number(line);
        process.kill(server, "SIGKILL");
      },
    });
    await expect(waiting).rejects.toThrow();
    const [next] = await launch({ what: "inside", plan: inside("echo $PPID") });
    expect(Number(next)).not.toBe(server);
  });

  it("lets its program end, and does not outlive a killed program", async () => {
    const launcher = join(import.meta.dirname, "launcher.ts");
    const start = (script: string) =>
      spawn(
        process.execPath,
        [
          "--input-type=module",
          "-e",
          `import { createLauncher } from ${JSON.stringify(launcher)};
           const launch = createLauncher(${JSON.stringify(program)});
           await launch({ what: "inside", plan: [["argument", "sh"], ["argument", "-c"], ["argument", ${JSON.stringify(script)}]], onLine: (line) => console.log(line) });`,
        ],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
    const done = start("echo done");
    const output = text(done.stdout);
    expect(await once(done, "exit")).toEqual([0, null]);
    expect(await output).toBe("done\n");
    const killed = start("echo $$; exec sleep 600");
    const [line] = await once(killed.stdout, "data");
    const launched = Number(String(line));
    killed.kill("SIGKILL");
    await expect.poll(() => [servers(killed.pid), isThere(launched)]).toEqual([[], false]);
  });
});

function isThere(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z");
  } catch {
    return false;
  }
}
