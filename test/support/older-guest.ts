import { rename } from "node:fs/promises";
import { createConnection, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { type Decoded, decodeFields, type Encodable, encodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { FRAME_HEADER_BYTES } from "../../src/sandbox/guest/frame.ts";

type Welcome = typeof shapes.WELCOME;

/** The welcomes of guests of other versions: one from before `FENCE`, and one with another protocol. */
export const otherVersions = {
  "that cannot fence": ({ fences: _, ...welcome }: Decoded<Welcome>): Encodable<Welcome> => ({ ...welcome, guestVersion: "0.0.1" }),
  "of another protocol": (welcome: Decoded<Welcome>): Encodable<Welcome> => ({ ...welcome, version: 0 }),
} as const;

/**
 * Puts a proxy between the host and the guest of a live sandbox. It changes the welcome to that of another version, and
 * passes everything else on. A restarted guest gets its own socket.
 */
export async function pretendOtherGuest(
  sandboxFolder: string,
  change: (welcome: Decoded<Welcome>) => Encodable<Welcome>,
): Promise<AsyncDisposable> {
  const [socket, real, ours] = ["guest.sock", "real.sock", "older.sock"].map((name) => join(sandboxFolder, name)) as [
    string,
    string,
    string,
  ];
  const open = new Set<Socket>();
  const server = createServer((host) => {
    const guest = createConnection(real);
    for (const each of [host, guest]) {
      open.add(each);
      each.on("error", () => undefined);
      each.on("close", () => {
        open.delete(each);
        host.destroy();
        guest.destroy();
      });
    }
    host.pipe(guest);
    let held = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      if (held.length < FRAME_HEADER_BYTES || held.length < FRAME_HEADER_BYTES + held.readUInt32LE(0)) return;
      const end = FRAME_HEADER_BYTES + held.readUInt32LE(0);
      guest.off("data", onData);
      const welcome = decodeFields("WELCOME", shapes.WELCOME, held.subarray(FRAME_HEADER_BYTES, end));
      host.write(encodeFields("WELCOME", 0, shapes.WELCOME, change(welcome)));
      host.write(held.subarray(end));
      guest.pipe(host);
    };
    guest.on("data", onData);
  });
  await new Promise<void>((resolve) => server.listen(ours, resolve));
  await rename(socket, real);
  await rename(ours, socket);
  return {
    async [Symbol.asyncDispose]() {
      for (const each of open) each.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
