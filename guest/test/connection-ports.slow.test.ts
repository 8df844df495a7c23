import { createServer, type Server } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { decodeFields, entries } from "../../src/sandbox/guest/fields.ts";
import { encodeCredit, encodeDataHead } from "../../src/sandbox/guest/raw.ts";
import { useGuest } from "./guest-driver.ts";

const { link } = useGuest();

describe("connections to ports", () => {
  const servers: Server[] = [];
  afterAll(() => {
    for (const server of servers) server.close();
  });
  const listen = (host: string): Promise<number> =>
    new Promise((resolve) => {
      const server = createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket));
      servers.push(server);
      server.listen(0, host, () => resolve((server.address() as { port: number }).port));
    });

  test.each(["127.0.0.1", "::1"])("on %s carry bytes both ways and half-close", async (host) => {
    const stream = link.open("CONNECT", { port: await listen(host) });
    expect((await stream.next()).type).toBe("OK");
    const sent = Buffer.alloc(900_000, "pattern");
    for (let at = 0; at < sent.length; at += 100_000) {
      link.send(encodeDataHead(stream.id, 100_000));
      link.send(sent.subarray(at, at + 100_000));
    }
    link.frame("END", stream.id);
    const got: Buffer[] = [];
    for (let frame = await stream.nextOther("CREDIT"); frame.type === "DATA"; frame = await stream.nextOther("CREDIT"))
      got.push(frame.payload);
    expect(Buffer.concat(got).equals(sent)).toBe(true);
  });

  test("grant credit, and wait for it", async () => {
    const stream = link.open("CONNECT", { port: await listen("127.0.0.1") });
    await stream.next();
    let sent = 0;
    let credit = 1_048_576;
    let received = 0;
    const total = 5_000_000;
    while (received < total) {
      while (sent < total && credit >= 100_000) {
        link.send(encodeDataHead(stream.id, 100_000));
        link.send(Buffer.alloc(100_000));
        sent += 100_000;
        credit -= 100_000;
      }
      const frame = await stream.next();
      if (frame.type === "CREDIT") credit += frame.payload.readUInt32LE(0);
      else received += frame.payload.length;
      if (frame.type === "DATA") link.send(encodeCredit(stream.id, frame.payload.length));
    }
    expect(received).toBe(total);
    link.frame("CANCEL", stream.id);
  });

  test("are refused without a listener, and listeners are listed", async () => {
    const port = await listen("127.0.0.1");
    const listing = link.open("LISTENERS", {});
    const found = [];
    for (let frame = await listing.next(); frame.type === "ENTRY"; frame = await listing.next())
      found.push(decodeFields("ENTRY", entries.listener, frame.payload));
    expect(found).toContainEqual({ port, uid: process.getuid?.(), address: "127.0.0.1" });
    expect(await link.ask("CONNECT", { port: 1 })).toBe("refused");
    expect(await link.ask("CONNECT", { port: 70_000 })).toBe("invalid");
  });
});
