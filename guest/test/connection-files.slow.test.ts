import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { answers, decodeFields } from "../../src/sandbox/guest/fields.ts";
import { encodeCredit, encodeDataHead } from "../../src/sandbox/guest/raw.ts";
import { run } from "./guest-commands.ts";
import { errorCode, useGuest } from "./guest-driver.ts";
import { childrenNamed, until } from "./machine-processes.ts";

const { guest, link } = useGuest();

describe("file requests", () => {
  const write = async (path: string, data: Buffer): Promise<number> => {
    const stream = link.open("WRITE", { path });
    link.send(encodeDataHead(stream.id, data.length));
    link.send(data);
    link.frame("END", stream.id);
    return decodeFields("OK", answers.written, (await stream.next()).payload).bytes;
  };

  test("write and read many files at once through workers", async () => {
    const paths = Array.from({ length: 100 }, (_, i) => join(guest.folder, `file-${i}`));
    await Promise.all(paths.map((path) => write(path, Buffer.from(path))));
    const read = async (path: string) => {
      const stream = link.open("READ", { path });
      let text = "";
      for (let frame = await stream.next(); frame.type !== "END"; frame = await stream.next()) {
        if (frame.type === "ERROR") throw new Error(errorCode(frame));
        if (frame.type === "DATA") text += frame.payload.toString();
      }
      return text;
    };
    expect(await Promise.all(paths.map(read))).toEqual(paths);
    expect(await link.ask("STAT", { path: join(guest.folder, "none") })).toBe("not_found");
    await until(
      "only idle workers remain",
      () => childrenNamed(childrenNamed(guest.child.pid as number, "caisson-spawn")[0] as number, "caisson-files").length <= 2,
    );
  });

  test("read a large file with back-pressure and without loss", async () => {
    const path = join(guest.folder, "large");
    await run(link, { argv: ["sh", "-c", `seq 1 3000000 > ${path}`] });
    const stream = link.open("READ", { path });
    let bytes = 0;
    let uncredited = 0;
    for (let frame = await stream.next(); frame.type !== "END"; frame = await stream.next()) {
      if (frame.type !== "DATA") continue;
      bytes += frame.payload.length;
      uncredited += frame.payload.length;
      if (uncredited < 500_000) continue;
      link.send(encodeCredit(stream.id, uncredited));
      uncredited = 0;
    }
    expect(bytes).toBe(22_888_896);
  });

  test("leave nothing after an interrupted write", async () => {
    const path = join(guest.folder, "broken");
    const other = await guest.link();
    const stream = other.open("WRITE", { path });
    other.send(encodeDataHead(stream.id, 5));
    other.send(Buffer.from("half "));
    await other.ping();
    other.close();
    await other.closed;
    expect(await link.ask("STAT", { path })).toBe("not_found");
    const cancelled = link.open("WRITE", { path });
    link.frame("CANCEL", cancelled.id);
    expect(await write(path, Buffer.from("whole"))).toBe(5);
  });

  test("fail alone if their worker dies", async () => {
    const watch = link.open("WATCH", { path: guest.folder });
    expect((await watch.next()).type).toBe("OK");
    const spawner = childrenNamed(guest.child.pid as number, "caisson-spawn")[0] as number;
    for (const pid of childrenNamed(spawner, "caisson-files")) process.kill(pid, "SIGKILL");
    expect(errorCode(await watch.nextOther("WATCH_EVENT"))).toBe("io");
    expect(await link.ask("STAT", { path: "/" })).toBe("OK");
  });
});
