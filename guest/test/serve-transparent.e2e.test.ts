import { createSocket, type Socket as DatagramSocket, type RemoteInfo } from "node:dgram";
import { connect, createServer } from "node:net";
import { afterAll, expect, test } from "vitest";
import { decodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { decodeDatagram, encodeDatagram } from "../../src/sandbox/guest/raw.ts";
import { errorCode, type Link, type Stream, startGuest, useGuest } from "./guest-driver.ts";

/** Every address of 127/8 belongs to this machine, as all addresses do in a transparent sandbox. */
const { guest, link } = useGuest(() => ({ args: ["--not-init", "--transparent"] }));
const sockets: DatagramSocket[] = [];
afterAll(() => {
  for (const socket of sockets) socket.close();
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function claim(over: Link, port: number, scope: number): Promise<Stream> {
  const stream = over.open("LISTEN", { port, scope });
  const answer = await stream.next();
  expect(answer.type === "ERROR" ? errorCode(answer) : answer.type).toBe("OK");
  return stream;
}

function udp(family: "udp4" | "udp6"): DatagramSocket {
  const socket = createSocket(family);
  sockets.push(socket);
  return socket;
}
const answerAt = (socket: DatagramSocket): Promise<{ text: string; from: RemoteInfo }> =>
  new Promise((resolve) => socket.once("message", (message, from) => resolve({ text: message.toString(), from })));

test("a connection to any address arrives with its destination", async () => {
  const port = await freePort();
  await claim(link, port, 1);
  let id = 0;
  for (const address of ["127.0.0.1", "127.1.2.3", "127.255.0.1", "::1"]) {
    const socket = connect({ port, host: address });
    id += 2;
    const frame = await link.stream(id).next();
    expect(decodeFields("ACCEPTED", shapes.ACCEPTED, frame.payload)).toEqual({ port, address, addressPort: port });
    socket.destroy();
  }
});

test.each([
  ["udp4", "127.9.8.7"],
  ["udp6", "::1"],
] as const)("a %s question to %s is answered from there", async (family, address) => {
  const port = await freePort();
  const stream = await claim(link, port, 2);
  const socket = udp(family);
  const answered = answerAt(socket);
  socket.send("question", port, address);
  const frame = await stream.next();
  expect(frame.type).toBe("DATAGRAM");
  const { token, data } = decodeDatagram(frame.payload);
  expect(data.toString()).toBe("question");
  link.send(encodeDatagram(stream.id, token + 1, Buffer.from("without a question")));
  link.send(encodeDatagram(stream.id, token, Buffer.from("answer")));
  link.send(encodeDatagram(stream.id, token, Buffer.from("again")));
  const { text, from } = await answered;
  expect({ text, address: from.address, port: from.port }).toEqual({ text: "answer", address, port });
});

test("questions past the limit wait until others are answered", async () => {
  const port = await freePort();
  const stream = await claim(link, port, 2);
  const socket = udp("udp4");
  const tokens: number[] = [];
  // One at a time: more than the kernel stores for a socket would be lost.
  for (let i = 0; i < 256; i++) {
    socket.send(String(i), port, "127.0.0.1");
    tokens.push(decodeDatagram((await stream.next()).payload).token);
  }
  for (let i = 256; i < 300; i++) socket.send(String(i), port, "127.0.0.1");
  let came = false;
  const next = stream.next().then(() => {
    came = true;
  });
  await link.ping();
  expect(came).toBe(false);
  for (const token of tokens.slice(0, 44)) link.send(encodeDatagram(stream.id, token, Buffer.alloc(0)));
  await next;
  for (let i = 257; i < 300; i++) await stream.next();
});

test("questions without an answer expire and make room for others", async () => {
  await using fresh = await startGuest({ args: ["--not-init", "--transparent"] });
  const port = await freePort();
  const stream = await claim(await fresh.link(), port, 2);
  const socket = udp("udp4");
  for (let i = 0; i < 257; i++) {
    socket.send(String(i), port, "127.0.0.1");
    expect((await stream.next()).type).toBe("DATAGRAM");
  }
});

test("an unclaimed question gets no answer, and the next claim gets the next one", async () => {
  const port = await freePort();
  const first = await claim(link, port, 2);
  link.frame("CANCEL", first.id);
  await link.ping();
  const socket = udp("udp4");
  await new Promise<void>((resolve) => socket.send("lost", port, "127.0.0.1", () => resolve()));
  await link.ping();
  const second = await claim(link, port, 2);
  socket.send("heard", port, "127.0.0.1");
  expect(decodeDatagram((await second.next()).payload).data.toString()).toBe("heard");
});

test("an invalid datagram closes the connection that sent it", async () => {
  for (const scope of [1, 2]) {
    const other = await guest.link();
    const stream = await claim(other, await freePort(), scope);
    other.frame("DATAGRAM", stream.id, Buffer.alloc(scope === 2 ? 3 : 8));
    await expect(other.closed, "it is closed").resolves.toBeUndefined();
  }
  await expect(link.ping(), "others are served").resolves.toBeUndefined();
});

test("an unknown scope is invalid, and others need the option", async () => {
  const port = await freePort();
  expect(await link.ask("LISTEN", { port, scope: 3 })).toBe("invalid");
  await using ordinary = await startGuest();
  const other = await ordinary.link();
  expect(await other.ask("LISTEN", { port, scope: 1 })).toBe("unsupported");
  expect(await other.ask("LISTEN", { port, scope: 2 })).toBe("unsupported");
  expect(await other.ask("LISTEN", { port, scope: 0 })).toBe("OK");
});
