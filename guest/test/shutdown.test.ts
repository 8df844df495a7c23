import { describe, expect, test } from "vitest";
import { decodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { decodeOutputHead } from "../../src/sandbox/guest/raw.ts";
import { finish, spawnIn, started } from "./guest-commands.ts";
import { type Link, type Stream, startGuest } from "./guest-driver.ts";
import { ownSeconds, pidsSleeping, until } from "./machine-processes.ts";

describe("shutdown", () => {
  /** A command that says when it has set its trap. */
  const trapping = async (last: Link, trap: string) => {
    const { stream } = spawnIn(last, { argv: ["sh", "-c", `trap ${trap} TERM; echo ready; while :; do sleep 0.05; done`] });
    await started(stream);
    await stream.next();
    return stream;
  };

  /**
   * What a command says and how it ends, taken without an acknowledgement: the guest goes as soon as it has told
   * everything, and whoever writes to it then is told that nobody is there, before the rest is read.
   */
  const lastWords = async (stream: Stream) => {
    let said = "";
    for (;;) {
      const frame = await stream.nextOther("STDIN_ACK");
      if (frame.type === "ENDED") {
        const { exitCode, stdoutBytes } = decodeFields("ENDED", shapes.ENDED, frame.payload);
        return { said, exitCode, stdoutBytes };
      }
      // On its standard error the shell may tell of its own children that were terminated with it.
      if (decodeOutputHead(frame.payload).descriptor === 1) said += frame.payload.subarray(9).toString();
    }
  };

  test("terminates, and answers and exits as soon as nothing runs", async () => {
    await using ending = await startGuest();
    const last = await ending.link();
    const polite = await trapping(last, "'echo bye; exit 4'");
    const answer = last.open("SHUTDOWN", { graceMs: 600_000 });
    expect(await lastWords(polite)).toEqual({ said: "bye\n", exitCode: 4, stdoutBytes: "ready\nbye\n".length });
    expect((await answer.next()).type).toBe("OK");
    expect(await ending.exited).toBe(0);
  });

  test("kills what is left after the grace, not before", async () => {
    await using ending = await startGuest();
    const last = await ending.link();
    const stubborn = await trapping(last, "''");
    const before = performance.now();
    const answer = last.open("SHUTDOWN", { graceMs: 400 });
    expect((await answer.next()).type).toBe("OK");
    // Its clock counts whole milliseconds.
    expect(performance.now() - before).toBeGreaterThan(398);
    expect((await finish(last, stubborn, [6, 0])).ended).toMatchObject({ kind: 6, signal: 9 });
    expect(await ending.exited).toBe(0);
  });

  test("by a signal to the guest leaves nothing behind", async () => {
    const seconds = ownSeconds(68);
    await using ending = await startGuest();
    const last = await ending.link();
    const { stream } = spawnIn(last, { argv: ["sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`] });
    await started(stream);
    await until("the tree is there", () => pidsSleeping(seconds).length === 2);
    ending.child.kill("SIGTERM");
    expect(await ending.exited).toBe(0);
    expect(pidsSleeping(seconds)).toEqual([]);
  });

  test("a guest that is killed takes its commands with it", async () => {
    const seconds = ownSeconds(69);
    await using ending = await startGuest();
    const last = await ending.link();
    const { stream } = spawnIn(last, { argv: ["sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`] });
    await started(stream);
    await until("the tree is there", () => pidsSleeping(seconds).length === 2);
    ending.child.kill("SIGKILL");
    await ending.exited;
    await until("nothing is left", () => pidsSleeping(seconds).length === 0);
    expect(ending.child.signalCode).toBe("SIGKILL");
  });
});
