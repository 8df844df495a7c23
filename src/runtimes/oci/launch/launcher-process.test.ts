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

/** Processes that this one started to launch by. */
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

describe("launches by a process that is small", () => {
  it("one after the other and together are started by the same one, which ends when there are no more", async () => {
    const before = servers();
    const launch = createLauncher(program);
    expect(await launch({ what: "inside", plan: inside("echo $PPID") })).toEqual([expect.stringMatching(/^\d+$/)]);
    const said = await Promise.all(Array.from({ length: 5 }, () => launch({ what: "inside", plan: inside("echo $PPID") })));
    expect(new Set(said.flat()).size).toBe(1);
    expect(servers()).toContain(Number(said.flat()[0]));
    await expect.poll(() => servers().filter((pid) => !before.includes(pid))).toEqual([]);
    expect(await launch({ what: "inside", plan: inside("echo again") })).toEqual(["again"]);
  });

  it("a failure, a cancelled one and one that takes too long are told apart", async () => {
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

  it("those of one that is killed fail, and the next are started by another", async () => {
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

  it("a program that has launched something ends when it is done, and nothing outlives one that is killed", async () => {
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
    const said = text(done.stdout);
    expect(await once(done, "exit")).toEqual([0, null]);
    expect(await said).toBe("done\n");
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
