import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { encodeAck } from "../../src/sandbox/guest/raw.ts";
import { tries } from "../../test/support/thorough.ts";
import { CANCELLED, EXITED, OUTPUT } from "./ended-kinds.ts";
import { finish, shell, spawnIn, started } from "./guest-commands.ts";
import { useGuest } from "./guest-driver.ts";
import { ownSeconds, pidsSleeping, statusOf, until } from "./machine-processes.ts";

const { guest, link } = useGuest();

describe("output", () => {
  test("stops at the bound without acknowledgment, and continues with it", async () => {
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", "exec yes"] });
    await started(stream);
    let bytes = 0;
    while (bytes < 1_048_576) bytes += (await stream.next()).payload.length - 9;
    expect(bytes).toBe(1_048_576);
    await link.ping();
    await delay(50);
    const before = statusOf(guest.child.pid as number, "VmRSS");
    await link.ping();
    expect(statusOf(guest.child.pid as number, "VmRSS") - before).toBeLessThan(256);
    link.send(encodeAck(stream.id, 1, 500_000));
    let more = 0;
    while (more < 500_000) more += (await stream.next()).payload.length - 9;
    expect(more).toBe(500_000);
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });

  test("drops its oldest bytes with keepLast if no client is attached", async () => {
    const other = await guest.link();
    const { ref, stream } = spawnIn(other, { argv: ["sh", "-c", "head -c 5000000 /dev/zero; echo end; exec sleep 63"], keepLast: true });
    await started(stream);
    other.close();
    let attachment = link.open("ATTACH", { ref });
    let written = (await started(attachment)).stdoutBytes;
    await until("all of it is written", async () => {
      if (written === 5_000_004) return true;
      link.frame("CANCEL", attachment.id);
      attachment = link.open("ATTACH", { ref });
      written = (await started(attachment)).stdoutBytes;
      return false;
    });
    const first = (await attachment.next()).payload;
    const from = Number(first.readBigUInt64LE(1));
    expect(5_000_004 - from).toBeGreaterThanOrEqual(917_504);
    expect(5_000_004 - from).toBeLessThanOrEqual(1_048_576);
    // Acknowledged output is still there for the next client.
    link.send(encodeAck(attachment.id, 1, 5_000_004));
    const again = link.open("ATTACH", { ref, stdoutFrom: 5_000_000 });
    expect(await started(again)).toMatchObject({ stdoutBytes: 5_000_004, ended: false });
    expect((await again.next()).payload.subarray(9).toString()).toBe("end\n");
    expect(await link.ask("KILL", { ref })).toBe("OK");
    expect((await finish(link, again, [5_000_004, 0])).ended).toMatchObject({ kind: CANCELLED, stdoutBytes: 5_000_004 });
    const late = link.open("ATTACH", { ref, stdoutFrom: 5_000_000 });
    expect((await started(late)).ended).toBe(true);
    expect((await finish(link, late, [5_000_000, 0])).stdout).toBe("end\n");
  });

  test("waits for an attached client even with keepLast", async () => {
    const slow = await guest.link();
    const script = "head -c 3000000 /dev/zero; exec sleep 64";
    const { ref, stream } = spawnIn(slow, { argv: ["sh", "-c", script], keepLast: true });
    await started(stream);
    let bytes = 0;
    while (bytes < 1_048_576) bytes += (await stream.next()).payload.length - 9;
    await slow.ping();
    slow.send(encodeAck(stream.id, 1, 600_000));
    // The guest frees space in steps, each only after the whole step was acknowledged.
    while (bytes < 1_048_576 + 524_288) bytes += (await stream.next()).payload.length - 9;
    expect(bytes).toBeLessThanOrEqual(1_648_576);
    slow.close();
    await until("it continues without a listener", async () => {
      const look = link.open("ATTACH", { ref });
      const { stdoutBytes } = await started(look);
      link.frame("CANCEL", look.id);
      return stdoutBytes === 3_000_000;
    });
    expect(await link.ask("KILL", { ref })).toBe("OK");
  });

  test("ends the tree past its limit, and delivers exactly that much", async () => {
    const { ended, stdout, stderr } = await shell(link, "yes out & yes err >&2; wait", { outputBytesMax: 100_001 });
    expect(ended.kind).toBe(OUTPUT);
    expect(stdout.length + stderr.length).toBe(100_001);
  });

  test("may reach its limit exactly", async () => {
    expect((await shell(link, "printf 12345; printf 678 >&2", { outputBytesMax: 8 })).ended).toMatchObject({ kind: EXITED, exitCode: 0 });
  });

  test("of many megabytes arrives completely while pings are answered", async () => {
    const bytes = tries(100_000_000, 30_000_000);
    const { stream } = spawnIn(link, { argv: ["head", "-c", String(bytes), "/dev/zero"] });
    await started(stream);
    const other = await guest.link();
    const end = finish(link, stream);
    for (let i = 0; i < 20; i++) await other.ping();
    expect((await end).ended.stdoutBytes).toBe(bytes);
    other.close();
  });

  test("blocks only its own stream if a reader stalls", async () => {
    const slow = await guest.link();
    const { ref, stream } = spawnIn(slow, { argv: ["yes"] });
    await started(stream);
    slow.pause();
    expect((await shell(link, "echo fine")).stdout).toBe("fine\n");
    expect(await link.ask("KILL", { ref })).toBe("OK");
    slow.close();
  });

  test("does not delay the end if a silent descendant holds the pipes open", async () => {
    const seconds = ownSeconds(61);
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", `sleep ${seconds} & echo hi`] });
    await started(stream);
    expect((await finish(link, stream)).stdout).toBe("hi\n");
    await until("it still runs", () => pidsSleeping(seconds).length === 1);
    expect(await link.ask("KILL", { ref })).toBe("OK");
    expect(pidsSleeping(seconds)).toEqual([]);
  });

  test("of a descendant after the end is discarded without killing it", async () => {
    const file = join(guest.folder, "alive");
    const seconds = ownSeconds(62);
    const script = `(sleep 0.5; echo late; echo late >&2; touch ${file}; sleep ${seconds}) &`;
    const { ref, stream } = spawnIn(link, { argv: ["sh", "-c", script] });
    await started(stream);
    expect((await finish(link, stream)).stdout).toBe("");
    await until("the descendant wrote and lives", () => existsSync(file));
    expect(await link.ask("FORGET", { ref })).toBe("OK");
    // Forgotten, but still reachable.
    expect(await link.ask("KILL", { ref })).toBe("OK");
    expect(pidsSleeping(seconds)).toEqual([]);
  });
});
