import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import { bashKillTool, bashOutputTool, bashTool } from "./bash.ts";
import { startCommand } from "./command.ts";
import { gitTool } from "./git.ts";
import { BASH_CHARACTERS_MAX, BASH_OUTPUT_BYTES_MAX } from "./limits.ts";
import { readTool } from "./read.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";

describe("commands", () => {
  let bench: Workbench;
  beforeAll(async () => {
    bench = await createWorkbench({ real: true });
  });
  afterAll(() => bench[Symbol.asyncDispose]());
  const bash = (command: string, options: object = {}, context: object = {}) => bench.use(bashTool, { command, ...options }, context);
  const running = async (needle: string) =>
    (await bench.sandbox.processes()).some((each) => each.command.includes(needle) && each.state === "running");

  test("return their output in order, and how they ended", async () => {
    expect(await bash("echo out; echo err >&2; echo out2")).toMatchObject({
      outcome: "ok",
      text: "out\nerr\nout2",
      details: { exitCode: 0 },
    });
    expect(await bash("echo no; exit 3")).toMatchObject({ outcome: "error", text: "no\n\nExit code 3.", details: { exitCode: 3 } });
    expect(await bash("true")).toMatchObject({ outcome: "ok", text: "(no output)" });
    expect(await bash("kill -SEGV $$")).toMatchObject({ outcome: "error", text: expect.stringContaining("SIGSEGV") });
    expect(await bash("no-such-program-here")).toMatchObject({ outcome: "error", text: expect.stringContaining("Exit code 127") });
    expect(await bash("[[ a == a ]] && cat")).toMatchObject({ outcome: "ok", text: "(no output)" });
    await bash("mkdir -p sub");
    expect((await bash("basename $PWD", { cwd: "sub" })).text).toBe("sub");
  });

  test("mark bytes that are not UTF-8, and pass NULs through", async () => {
    expect((await bash("printf 'f\\374r\\0end'")).text).toBe("f\uFFFDr\0end");
  });

  test("cut long output in the middle, and keep all of it readable", async () => {
    const many = await bash("seq 1 20000");
    expect(many.text.length).toBeLessThan(BASH_CHARACTERS_MAX + 300);
    expect(many.text).toMatch(/^1\n2\n/);
    expect(many.text).toMatch(/19999\n20000$/);
    const file = /the full output is in (\S+):/.exec(many.text)?.[1] ?? "";
    expect((await bench.use(readTool, { path: file, offset: 10_000, limit: 2 })).text).toContain(" 10000\t10000\n 10001\t10001");
    const line = await bash("head -c 5000000 /dev/zero | tr '\\0' 'z'; printf end");
    const whole = /the full output is in (\S+):/.exec(line.text)?.[1] ?? "";
    expect(line.text).toMatch(/zend$/);
    expect((await bench.use(readTool, { path: whole })).text).toContain(
      "[the line has 5000003 characters; continue with offset 1 and column 2001]",
    );
    expect((await bench.use(readTool, { path: whole, column: 4_999_999 })).text).toBe("zzend");
  });

  test("end if their output exceeds the limit", async () => {
    const result = await bash("head -c 70000000 /dev/zero | tr '\\0' 'z'; sleep 47.11");
    expect(result).toMatchObject({ outcome: "error", text: expect.stringMatching(/Ended: the output exceeds 67108864 bytes\.$/) });
    expect(await running("47.11")).toBe(false);
  });

  test("end with all their children after a timeout", async () => {
    const result = await bash("echo begun; sleep 48.11 & sleep 48.12", { timeout_ms: 300 });
    expect(result).toMatchObject({ outcome: "error", text: expect.stringMatching(/^begun\n\nTimed out/) });
    expect([await running("48.11"), await running("48.12")]).toEqual([false, false]);
  });

  test("end when interrupted, and keep their output", async () => {
    const abort = new AbortController();
    const result = bash("echo begun; sleep 49.11", {}, { signal: abort.signal, onOutput: () => abort.abort() });
    expect(await result).toMatchObject({ outcome: "interrupted", text: "begun\n\nInterrupted." });
    expect(await running("49.11")).toBe(false);
  });

  test("end in the background when their output file reaches the limit", async () => {
    const started = await bash("head -c 70000000 /dev/zero | tr '\\0' 'z'; echo after; sleep 47.21", { background: true });
    const { background: id, file } = started.details as { background: string; file: string };
    const { text } = await bench.use(bashOutputTool, { id, wait_ms: 30_000 });
    expect(text).toMatch(/It ended.*Its output reached the limit of 67108864 bytes/);
    expect((await bench.sandbox.stat(file)).sizeBytes).toBe(BASH_OUTPUT_BYTES_MAX);
    expect(await running("47.21")).toBe(false);
  });

  test("report their last output from the background, and leave only its file", async () => {
    const { details } = await bash("seq 1 3; exit 4", { background: true });
    const { background: id, file } = details as { background: string; file: string };
    expect((await bench.use(bashOutputTool, { id, wait_ms: 10_000 })).text).toMatch(/^1\n2\n3\n\nIt ended with exit code 4\./);
    const { entries } = await bench.sandbox.list(file.replace(/\/[^/]*$/, ""));
    expect(entries.map(({ name }) => name).filter((name) => !/^t[0-9.]+\.txt$/.test(name))).toEqual([]);
  });

  test("attach a resumed call to the first call's command, with all its output", async () => {
    const call = { call: "t500.1" };
    const count = "echo once >> counter; cat counter; sleep 0.3; echo end";
    // Simulates a call whose holder died: started, without a listener.
    (await startCommand({ argv: { shell: count }, cwd: "/workspace" }, bench.context(call))).detach();
    expect((await bash(count, {}, { ...call, resumed: true })).text).toBe("once\nend");
    expect((await bash(count, {}, { ...call, resumed: true })).text).toBe("once\nend");
  });

  test("run in the background until read, awaited or killed", async () => {
    const { text, details } = await bash("echo ready; read -t 60 <> <(:) ; sleep 50.11", { background: true });
    const { background: id } = details as { background: string };
    expect(text).toContain(id);
    let seen = "";
    while (!seen.includes("ready")) seen = (await bench.use(bashOutputTool, { id })).text;
    expect(seen).toContain("still running");
    expect((await bench.use(bashKillTool, { id })).outcome).toBe("ok");
    expect((await bench.use(bashOutputTool, { id, wait_ms: 5000 })).text).toMatch(/ready\n\nIt ended: killed\./);
    const short = await bash("sleep 0.2; exit 4", { background: true });
    const waited = await bench.use(bashOutputTool, { id: (short.details as { background: string }).background, wait_ms: 10_000 });
    expect(waited.text).toMatch(/^\(no output\)\n\nIt ended with exit code 4\./);
    await expect(bench.use(bashOutputTool, { id: "t999.9" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("report a full file system instead of empty output", async () => {
    const full = () => Promise.reject(new CaissonError("no_space", "writing: no space left on device"));
    await using crowded = await createWorkbench({ real: true, change: (sandbox) => ({ ...sandbox, writeFile: full }) as typeof sandbox });
    for (const command of ["exit 1", "true"])
      expect((await crowded.use(bashTool, { command })).text).toMatch(/^\(no output\)\n\n\[\/tmp in the sandbox is full/);
    expect((await crowded.use(bashTool, { command: "echo fine" })).text).toBe("fine");
  });

  test("run git inside, with each argument passed unchanged", async () => {
    const git = (...args: string[]) => bench.use(gitTool, { args });
    await git("init", "-q", "-b", "main");
    await bench.put("a b; touch hacked", "text\n");
    await git("add", ".");
    const committed = await git("-c", "user.name=T", "-c", "user.email=t@t", "commit", "-q", "-m", "It's $(touch hacked2)");
    expect(committed.outcome).toBe("ok");
    expect((await git("log", "--format=%s")).text).toBe("It's $(touch hacked2)");
    expect((await git("status", "--short")).text).not.toContain("hacked2");
    expect(await git("nonsense")).toMatchObject({ outcome: "error", text: expect.stringContaining("Exit code 1") });
  });
});
