import { describe, expect, test } from "vitest";
import { decodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { decodeOutputHead } from "../../src/sandbox/guest/raw.ts";
import { finish, spawnIn, started } from "./guest-commands.ts";
import { type Link, type Stream, startGuest } from "./guest-driver.ts";
import { ownSeconds, pidsSleeping, until } from "./machine-processes.ts";

describe("shutdown", () => {
  /** Starts a command that prints a line when it has set its trap. */
  const trapping = async (last: Link, trap: string) => {
    const { stream } = spawnIn(last, { argv: ["sh", "-c", `trap ${trap} TERM; echo ready; while :; do sleep 0.05; done`] });
    await started(stream);
    await stream.next();
    return stream;
  };

  /**
   * Returns what a command prints and how it ends, without acknowledging it: the guest ends as soon as it has sent
   * everything, and a later write would fail before the rest is read.
   */
  const lastWords = async (stream: Stream) => {
    let output = "";
    for (;;) {
      const frame = await stream.nextOther("STDIN_ACK");
      if (frame.type === "ENDED") {
        const { exitCode, stdoutBytes } = decodeFields("ENDED", shapes.ENDED, frame.payload);
        return { said: output, exitCode, stdoutBytes };
      }
      // On stderr the shell may report its children that were terminated with it.
      if (decodeOutputHead(frame.payload).descriptor === 1) output += frame.payload.subarray(9).toString();
    }
  };

  test("terminates all work, answers, and exits as soon as nothing runs", async () => {
    await using ending = await startGuest();
    const last = await ending.link();
    const polite = await trapping(last, "'echo bye; exit 4'");
    const answer = last.open("SHUTDOWN", { graceMs: 600_000 });
    expect(await lastWords(polite)).toEqual({ said: "bye\n", exitCode: 4, stdoutBytes: "ready\nbye\n".length });
    expect((await answer.next()).type).toBe("OK");
    expect(await ending.exited).toBe(0);
  });

  test("kills what remains after the grace period, not before", async () => {
    await using ending = await startGuest();
    const last = await ending.link();
    const stubborn = await trapping(last, "''");
    const before = performance.now();
    const answer = last.open("SHUTDOWN", { graceMs: 400 });
    expect((await answer.next()).type).toBe("OK");
    // The guest's clock counts whole milliseconds.
    expect(performance.now() - before).toBeGreaterThan(398);
    expect((await finish(last, stubborn, [6, 0])).ended).toMatchObject({ kind: 6, signal: 9 });
    expect(await ending.exited).toBe(0);
  });

  test("leaves nothing behind after SIGTERM to the guest", async () => {
    const seconds = ownSeconds(68);
    await using ending = await startGuest();
    const last = await ending.link();
    const { stream } = spawnIn(last, { argv: ["sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`] });
    await started(stream);
    await until("the tree runs", () => pidsSleeping(seconds).length === 2);
    ending.child.kill("SIGTERM");
    expect(await ending.exited).toBe(0);
    expect(pidsSleeping(seconds)).toEqual([]);
  });

  test("ends all commands if the guest is killed", async () => {
    const seconds = ownSeconds(69);
    await using ending = await startGuest();
    const last = await ending.link();
    const { stream } = spawnIn(last, { argv: ["sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`] });
    await started(stream);
    await until("the tree runs", () => pidsSleeping(seconds).length === 2);
    ending.child.kill("SIGKILL");
    await ending.exited;
    await until("no process remains", () => pidsSleeping(seconds).length === 0);
    expect(ending.child.signalCode).toBe("SIGKILL");
  });
});
