import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { ifErrno, ignore, UNREACHABLE } from "../../lib/failures.ts";
import type { ConformanceTest } from "./context.ts";
import {
  describeEnd,
  eventually,
  finish,
  liveWith,
  patternBytes,
  readAll,
  reader,
  readText,
  rejectsWith,
  run,
  runOk,
  sameBytes,
  start,
  uniqueSleep,
  within,
} from "./expectations.ts";

/** Starting processes, their output, and their ends. */
export const processTests: ConformanceTest[] = [
  {
    name: "process: stdout and stderr are kept apart",
    async run(context) {
      const { stdout, stderr, ended } = await run(context, await context.sandbox(), "print", { args: ["to out", "to err"] });
      assert.equal(stdout.toString(), "to out");
      assert.equal(stderr.toString(), "to err");
      assert.equal(ended.stdoutBytes, 6);
      assert.equal(ended.stderrBytes, 6);
      assert.ok(ended.durationMs >= 0);
      return undefined;
    },
  },
  {
    name: "process: output is byte-exact, even if binary and on both streams",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/bytes`;
      const bytes = patternBytes(3_000_001);
      await sandbox.writeFile(path, bytes);
      const { stdout, stderr } = await run(context, sandbox, "show-both", { args: [path] });
      sameBytes(stdout, bytes, "stdout");
      sameBytes(stderr, bytes, "stderr");
      return undefined;
    },
  },
  {
    name: "process: exit codes are reported unchanged",
    async run(context) {
      for (const code of [0, 1, 42, 255]) {
        const { ended } = await run(context, await context.sandbox(), "exit", { args: [String(code)] });
        assert.equal(describeEnd(ended), `exited ${code}`);
      }
      return undefined;
    },
  },
  {
    name: "process: a process killed by a signal reports which",
    async run(context) {
      for (const name of ["TERM", "KILL", "USR1"]) {
        const { ended } = await run(context, await context.sandbox(), "signal-self", { args: [name] });
        assert.equal(describeEnd(ended), `signaled SIG${name}`);
      }
      return undefined;
    },
  },
  {
    name: "process: arguments arrive unchanged",
    async run(context) {
      for (const argument of ["", "two words", "a'b\"c`d$e\\f", "-n", "line\nbreak", "ünï ☃ 💾", "*"]) {
        const { stdout } = await run(context, await context.sandbox(), "print", { args: [argument, ""] });
        assert.equal(stdout.toString(), argument);
      }
      return undefined;
    },
  },
  {
    name: "process: a missing program is not_found",
    async run(context) {
      const sandbox = await context.sandbox();
      await rejectsWith(context, "not_found", "spawning nothing", () => sandbox.spawn({ argv: ["caisson-no-such-program"] }));
      await rejectsWith(context, "not_found", "spawning a missing path", () => sandbox.spawn({ argv: ["/usr/caisson/no-such-program"] }));
      return undefined;
    },
  },
  {
    name: "process: a file without execute permission is denied",
    async run(context) {
      const sandbox = await context.sandbox();
      const cwd = await context.folder();
      await sandbox.writeFile(`${cwd}/plain`, Buffer.from("#!/bin/sh\n"), { mode: 0o644 });
      await rejectsWith(context, "denied", "spawning a plain file", () => sandbox.spawn({ argv: ["./plain"], cwd }));
      return undefined;
    },
  },
  {
    name: "process: a missing cwd is not_found",
    async run(context) {
      const sandbox = await context.sandbox();
      await rejectsWith(context, "not_found", "spawning nowhere", () => start(sandbox, "folder", { cwd: "/workspace/caisson-not-here" }));
      return undefined;
    },
  },
  {
    name: "process: the cwd is the requested one, or /workspace by default",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const inside = (await run(context, sandbox, "folder", { cwd: folder })).stdout.toString().trim();
      const byDefault = (await run(context, sandbox, "folder")).stdout.toString().trim();
      assert.equal(inside.split("/").at(-1), folder.split("/").at(-1));
      assert.equal(inside.slice(0, inside.lastIndexOf("/")), byDefault);
      if (context.capabilities.isolation > 0) assert.equal(byDefault, "/workspace");
      return undefined;
    },
  },
  {
    name: "process: a command's variables win over the sandbox's; the host's do not leak",
    async run(context) {
      const sandbox = await context.create({ env: { FROM_CONFIG: "config", BOTH: "config" } });
      const value = async (name: string) =>
        (await run(context, sandbox, "variable", { args: [name], env: { FROM_COMMAND: "c", BOTH: "command" } })).stdout
          .toString()
          .trimEnd();
      assert.equal(await value("FROM_CONFIG"), "config");
      assert.equal(await value("FROM_COMMAND"), "c");
      assert.equal(await value("BOTH"), "command");
      const inside = new Set((await runOk(context, sandbox, "environment")).split("\n"));
      const leaked = (await hostVariables()).filter((pair) => inside.has(pair) && !isCommonVariable(pair));
      assert.deepEqual(leaked, []);
      return undefined;
    },
  },
  {
    name: "process: PATH, HOME, USER and LANG have defaults",
    async run(context) {
      for (const name of ["PATH", "HOME", "USER", "LANG"]) {
        const value = await runOk(context, await context.sandbox(), "variable", name);
        assert.notEqual(value.trim(), "", name);
      }
      return undefined;
    },
  },
  {
    name: "process: the default user is not root",
    needs: "isolation",
    async run(context) {
      assert.notEqual((await runOk(context, await context.sandbox(), "user")).trim(), "0");
      return undefined;
    },
  },
  {
    name: "process: root is denied unless the config allows it",
    needs: "isolation",
    async run(context) {
      const sandbox = await context.create({ allowRoot: false });
      await rejectsWith(context, "denied", "spawning as root", () => start(sandbox, "user", { user: "root" }));
      await rejectsWith(context, "denied", "spawning as 0", () => start(sandbox, "user", { user: "0" }));
      return undefined;
    },
  },
  {
    name: "process: root works if the config allows it",
    needs: "rootUser",
    async run(context) {
      const sandbox = await context.create({ allowRoot: true });
      const { stdout } = await run(context, sandbox, "user", { user: "root" });
      assert.equal(stdout.toString().trim(), "0");
      assert.notEqual((await runOk(context, sandbox, "user")).trim(), "0");
      return undefined;
    },
  },
  {
    name: "process: allowRoot is unsupported if the runtime has no root",
    needs: "!rootUser",
    async run(context) {
      await rejectsWith(context, "unsupported", "a sandbox with root", () => context.create({ allowRoot: true }));
      return undefined;
    },
  },
  {
    name: "process: a hundred concurrent processes each have their own output",
    async run(context) {
      const sandbox = await context.sandbox();
      const texts = Array.from({ length: 100 }, (_, i) => `number ${i}`);
      const all = await Promise.all(
        texts.map((text) => run({ ...context, patienceMs: context.patienceMs * 4 }, sandbox, "print", { args: [text, text] })),
      );
      assert.deepEqual(
        all.map((each) => each.stdout.toString()),
        texts,
      );
      assert.ok(all.every((each) => describeEnd(each.ended) === "exited 0"));
      return undefined;
    },
  },
  {
    name: "process: ended resolves if the consumer discards the output",
    async run(context) {
      const running = await start(await context.sandbox(), "zeros", { args: ["4000000"] });
      running.discardOutput();
      const ended = await within(context, "the end of a process whose output is discarded", running.ended);
      assert.equal(describeEnd(ended), "exited 0");
      assert.equal(ended.stdoutBytes, 4_000_000);
      return undefined;
    },
  },
  {
    name: "process: a slow consumer slows the process down and loses nothing",
    async run(context) {
      const sandbox = await context.sandbox();
      const noted = `${await context.folder()}/noted`;
      const blocks = 512;
      const running = await start(sandbox, "blocks", { args: [String(blocks), noted] });
      const countWritten = async () => Number(((await ignore(readText(context, sandbox, noted), "nothing is written yet")) ?? "0").trim());
      let last = -1;
      await eventually(context, "a process whose output is not consumed blocks", async () => {
        const before = last;
        last = await countWritten();
        const still = last > 0 && last === before && (await settlesAt(countWritten, last));
        return still;
      });
      assert.ok(last * 65_536 <= 16 * 1024 * 1024, `${last} of ${blocks} blocks were sent without a reader`);
      const { stdout, ended } = await finish(context, running);
      assert.equal(stdout.length, blocks * 65_536);
      assert.equal(describeEnd(ended), "exited 0");
      return undefined;
    },
  },
  {
    name: "process: a running process is listed with its ref and pid",
    async run(context) {
      const sandbox = await context.sandbox();
      const marker = uniqueSleep();
      const running = await start(sandbox, "ready-and-sleep", { args: [marker] });
      await reader(context, running).until("ready\n");
      await eventually(context, "the process is in the list", async () => (await liveWith(sandbox, marker)) > 0);
      const entry = (await sandbox.processes()).find((each) => each.ref === running.ref);
      assert.ok(entry, "an entry with its ref");
      assert.equal(entry.pid, running.pid);
      assert.equal(entry.state, "running");
      assert.ok(entry.memoryBytes >= 0 && entry.cpuMs >= 0 && entry.startedMs >= 0);
      await running.kill();
      const after = (await sandbox.processes()).find((each) => each.ref === running.ref);
      assert.ok(after === undefined || after.state === "ended");
      return undefined;
    },
  },
  {
    name: "process: a file that a command wrote can be read",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/made`;
      await runOk(context, sandbox, "write-file", path, "12345");
      assert.equal((await readAll(context, await sandbox.readFile(path))).length, 12_345);
      return undefined;
    },
  },
];

/**
 * Returns the variables that this process was started with, as `NAME=value`. The suite is a library and must not rely
 * on `process.env`, which may have been changed.
 */
async function hostVariables(): Promise<string[]> {
  return (await ifErrno(readFile("/proc/self/environ", "utf8"), UNREACHABLE, "")).split("\0").filter((pair) => pair !== "");
}

/**
 * Whether a variable may have the same value inside without a leak: common variables, and the toolchain paths of the
 * host template.
 */
function isCommonVariable(pair: string): boolean {
  return (
    /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_ALL|TERM|PWD|OLDPWD|SHLVL|_|HOSTNAME|TZ|DEBIAN_FRONTEND|PYENV_ROOT|RUSTUP_HOME|CARGO_HOME|GO(PATH|ROOT)|NVM_DIR|(FNM|SDKMAN|DENO|ASDF|MISE)_[A-Z_]+|VOLTA_HOME|BUN_INSTALL|JAVA_HOME|npm_config_nodedir)=/.test(
      pair,
    ) || pair.split("\n").length > 1
  );
}

async function settlesAt(read: () => Promise<number>, value: number): Promise<boolean> {
  for (let i = 0; i < 5; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 40));
    if ((await read()) !== value) return false;
  }
  return true;
}
