import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decodeFields, entries } from "../../src/sandbox/guest/fields.ts";
import { encodeStdinEnd, encodeStdinHead } from "../../src/sandbox/guest/raw.ts";
import { CANCELLED, EXITED, SIGNALED, TIMED_OUT } from "./ended-kinds.ts";
import { finish, newRef, run, shell, spawnIn, started } from "./guest-commands.ts";
import { errorCode, errorMessage, useGuest } from "./guest-driver.ts";
import { ownSeconds, pidsRunning, pidsSleeping, until } from "./machine-processes.ts";

const { guest, link } = useGuest();

describe("a command", () => {
  test("ends with its exit code, and separates stdout and stderr", async () => {
    const { ended, stdout, stderr } = await shell(link, "echo out; echo err >&2; exit 3");
    expect(ended).toMatchObject({ kind: EXITED, exitCode: 3, signal: 0, stdoutBytes: 4, stderrBytes: 4 });
    expect([stdout, stderr]).toEqual(["out\n", "err\n"]);
  });

  test("reports the signal that ended it", async () => {
    expect((await shell(link, "kill -TERM $$")).ended).toMatchObject({ kind: SIGNALED, signal: 15 });
  });

  test("gets only its own environment, folder and arguments", async () => {
    const { stdout } = await run(link, {
      argv: ["sh", "-c", 'env | sort; echo "[$1]"; umask; ulimit -c', "sh", "a  b\n"],
      cwd: "/tmp",
      env: ["A=1", "PATH=/bin"],
    });
    expect(stdout).toBe("A=1\nPATH=/bin\nPWD=/tmp\n[a  b\n]\n0022\n0\n");
  });

  test("has three descriptors, its own session, and every signal at its default", async () => {
    const { pid, stdout } = await shell(link, "ls /proc/$$/fd; cut -d' ' -f6 /proc/$$/stat; exec grep -E 'Sig(Blk|Ign)' /proc/self/status");
    expect(stdout.trim().split("\n")).toEqual(["0", "1", "2", String(pid), "SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"]);
  });

  test("gets arguments and an environment that fill a frame", async () => {
    const large = "x".repeat(120_000);
    const { stdout } = await run(link, {
      argv: ["sh", "-c", 'printf %s "$1" | wc -c; printf %s "$BIG" | wc -c', "sh", large],
      env: [`BIG=${large}`, "PATH=/bin:/usr/bin"],
    });
    expect(stdout).toBe("120000\n120000\n");
  });

  test.each([
    ["a missing program", { argv: ["no-such-program"] }, "not_found", "no-such-program"],
    ["a missing path", { argv: ["/no/such"] }, "not_found", "/no/such"],
    ["a file that is not a program", { argv: ["/etc/passwd"] }, "not_executable", "/etc/passwd"],
    ["a folder as the program", { argv: ["/tmp"] }, "not_executable", "/tmp"],
    ["a missing cwd", { argv: ["true"], cwd: "/no/such" }, "not_found", "cwd /no/such"],
    ["a cwd that is a file", { argv: ["true"], cwd: "/etc/passwd" }, "not_directory", "/etc/passwd"],
    ["a relative cwd", { argv: ["true"], cwd: "tmp" }, "invalid", "absolute"],
    ["an empty argv", { argv: [] }, "invalid", "argv"],
    ["an invalid ref", { argv: ["true"], ref: "a b" }, "invalid", "ref"],
    ["an unknown user", { argv: ["true"], user: "somebody" }, "denied", "decimal"],
    ["a damaged group", { argv: ["true"], user: "1:" }, "denied", "UID:GID"],
    ["another group", { argv: ["true"], user: "1:2" }, "denied", "groups"],
    ["another user", { argv: ["true"], user: "12345" }, "denied", "user"],
  ])("fails for %s, and the error names it", async (_, command, code, text) => {
    const frame = await spawnIn(link, command).stream.next();
    expect([frame.type, errorCode(frame)]).toEqual(["ERROR", code]);
    expect(errorMessage(frame)).toContain(text);
  });

  test("can be started again under the same ref after a failed start", async () => {
    const ref = newRef();
    expect((await spawnIn(link, { ref, argv: ["no-such-program"] }).stream.next()).type).toBe("ERROR");
    expect((await run(link, { ref, argv: ["true"] })).ended.exitCode).toBe(0);
  });

  test("is run by the shell if it has no interpreter line", async () => {
    const script = join(guest.folder, "script");
    await shell(link, `printf 'echo "got $1"' > ${script}; chmod +x ${script}`);
    expect((await run(link, { argv: [script, "it"] })).stdout).toBe("got it\n");
  });

  test("accepts a timeout longer than any clock", async () => {
    expect((await shell(link, "sleep 0.1; echo on", { timeoutMs: Number.MAX_SAFE_INTEGER })).stdout).toBe("on\n");
  });

  test("runs a hundred times at once", async () => {
    const all = await Promise.all(Array.from({ length: 100 }, (_, i) => shell(link, `echo ${i}`)));
    expect(all.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 100 }, (_, i) => `${i}\n`));
  });
});

describe("a ref", () => {
  test("starts one process, however often it is requested", async () => {
    const ref = newRef();
    const file = join(guest.folder, ref);
    const command = { ref, argv: ["sh", "-c", `echo x >> ${file}; echo done`] };
    const first = await run(link, command);
    const again = spawnIn(link, command);
    expect(await started(again.stream)).toMatchObject({ pid: first.pid, existing: true });
    // The output was fully acknowledged: there is nothing to send again but the outcome.
    expect((await finish(link, again.stream, [5, 0])).ended.exitCode).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("x\n");
  });

  test("stays gone after it was forgotten", async () => {
    const { ref, stream } = spawnIn(link, { argv: ["true"] });
    await started(stream);
    await finish(link, stream);
    expect(await link.ask("FORGET", { ref })).toBe("OK");
    expect(await link.ask("FORGET", { ref })).toBe("gone");
    expect(await link.ask("SPAWN", { ref, argv: ["true"] })).toBe("gone");
    expect(await link.ask("ATTACH", { ref })).toBe("gone");
    expect(await link.ask("KILL", { ref })).toBe("gone");
    expect(await link.ask("ATTACH", { ref: newRef() })).toBe("not_found");
  });

  test("cannot be forgotten while it runs", async () => {
    const { ref, stream } = spawnIn(link, { argv: ["sleep", "60"] });
    await started(stream);
    expect(await link.ask("FORGET", { ref })).toBe("busy");
    expect(await link.ask("KILL", { ref })).toBe("OK");
    expect((await finish(link, stream)).ended).toMatchObject({ kind: CANCELLED });
  });

  test("is taken over by a later attach", async () => {
    const { ref, stream } = spawnIn(link, { argv: ["cat"], stdin: true });
    await started(stream);
    const other = await guest.link();
    const attachment = other.open("ATTACH", { ref });
    expect(await started(attachment)).toMatchObject({ existing: true, stdinBytes: 0 });
    expect(errorCode(await stream.next())).toBe("busy");
    other.send(encodeStdinHead(attachment.id, 0, 2));
    other.send(Buffer.from("hi"));
    other.send(encodeStdinEnd(attachment.id, 2));
    expect((await finish(other, attachment)).stdout).toBe("hi");
    other.close();
  });

  test("continues without the host, and delivers the rest without a gap", async () => {
    const first = await guest.link();
    const { ref, stream } = spawnIn(first, { argv: ["seq", "1", "200000"] });
    await started(stream);
    const one = await stream.next();
    first.close();
    await first.closed;
    const second = await guest.link();
    const had = one.payload.length - 9;
    const rest = second.open("ATTACH", { ref, stdoutFrom: had });
    await started(rest);
    const { stdout } = await finish(second, rest, [had, 0]);
    const whole = one.payload.subarray(9).toString() + stdout;
    expect(whole).toBe(`${Array.from({ length: 200_000 }, (_, i) => i + 1).join("\n")}\n`);
    expect(errorCode(await second.open("ATTACH", { ref, stdoutFrom: 0 }).next())).toBe("gone");
    expect(errorCode(await second.open("ATTACH", { ref, stdoutFrom: 9_999_999 }).next())).toBe("invalid");
    second.close();
  });
});

describe("a tree", () => {
  const seconds = ownSeconds(63);
  const runaway = `setsid sh -c 'sh -c "sleep ${seconds} & sleep ${seconds}" &' & (setsid sleep ${seconds} &) ; sleep ${seconds}`;

  test("is killed completely after its timeout, including its sessions", async () => {
    const { ended } = await shell(link, runaway, { timeoutMs: 300 });
    expect(ended).toMatchObject({ kind: TIMED_OUT });
    expect(ended.durationMs).toBeGreaterThanOrEqual(300);
    await until("no process remains", () => pidsSleeping(seconds).length === 0);
  });

  test("is killed completely on request before the answer is sent", async () => {
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", runaway] });
    await started(stream);
    await until("the tree runs", () => pidsSleeping(seconds).length === 4);
    expect(await link.ask("KILL", { ref })).toBe("OK");
    expect(pidsSleeping(seconds)).toEqual([]);
    expect((await finish(link, stream)).ended).toMatchObject({ kind: CANCELLED, signal: 9 });
  });

  test("cannot escape by forking as fast as it can", async () => {
    const script = `f() { sleep ${seconds} & (setsid sleep ${seconds} &); f & exit; }; f`;
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", script] });
    await started(stream);
    await until("it forks", () => pidsSleeping(seconds).length > 10);
    expect(await link.ask("KILL", { ref })).toBe("OK");
    expect(pidsSleeping(seconds)).toEqual([]);
  });

  test("delivers a signal to its leader, or to all its processes on request", async () => {
    const script = 'trap "echo leader" USR1; (trap "echo child" USR1; echo ready; while :; do sleep 0.01; done) & while :; do wait; done';
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", script] });
    await started(stream);
    const lines = async (count: number): Promise<string[]> => {
      let text = "";
      while (text.split("\n").length <= count) {
        const { payload } = await stream.next();
        // On stderr, the shell also reports the sleep that the signal ended.
        if (payload[0] === 1) text += payload.subarray(9).toString();
      }
      return text.trim().split("\n").sort();
    };
    expect(await lines(1)).toEqual(["ready"]);
    expect(await link.ask("SIGNAL", { ref, signal: 10 })).toBe("OK");
    expect(await lines(1)).toEqual(["leader"]);
    expect(await link.ask("SIGNAL", { ref, signal: 10, tree: true })).toBe("OK");
    expect(await lines(2)).toEqual(["child", "leader"]);
    expect(await link.ask("SIGNAL", { ref, signal: 65 })).toBe("invalid");
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });

  test("is listed with its ref, and so is an ended process", async () => {
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", `setsid sleep ${seconds} & wait`] });
    const { pid } = await started(stream);
    const over = newRef();
    await run(link, { ref: over, argv: ["true"] });
    await until("the child runs", () => pidsRunning("sleep", seconds).length === 1);
    const listing = link.open("LIST", {});
    const found = [];
    for (let frame = await listing.next(); frame.type === "ENTRY"; frame = await listing.next())
      found.push(decodeFields("ENTRY", entries.process, frame.payload));
    expect(found.filter((each) => each.ref === ref)).toMatchObject([
      { pid, state: 1, command: `sh -c setsid sleep ${seconds} & wait` },
      { state: 1, command: `sleep ${seconds}`, parentPid: pid },
    ]);
    expect(found.filter((each) => each.ref === over)).toMatchObject([{ state: 2 }]);
    expect(found.some((each) => each.pid === guest.child.pid)).toBe(false);
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });
});
