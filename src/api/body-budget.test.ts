import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { createBodyBudget } from "./body-budget.ts";

const { server, token, post, defects } = useServer();

const BODY_BYTES = 1024 * 1024;
const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

/** Sends a request whose body lacks its last byte. */
async function slowBody(as: string): Promise<Socket> {
  const { port } = new URL(server().status.url as string);
  const socket = connect(Number(port), "127.0.0.1");
  open.push(socket);
  await once(socket, "connect");
  const head = `POST /v1/workflows/validate HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${as}\r\n`;
  const body = `{"definition":"${"x".repeat(BODY_BYTES - 17)}`;
  socket.write(`${head}content-type: application/json\r\nconnection: close\r\ncontent-length: ${BODY_BYTES}\r\n\r\n${body}`);
  return socket;
}

test("limits one owner's slow bodies without affecting other owners", async () => {
  const [ada, bob] = [await token("run", { owner: "ada" }), await token("run", { owner: "bob" })];
  const sockets: Socket[] = [];
  for (let count = 0; count < 20; count += 1) sockets.push(await slowBody(ada));
  // Requests above the limit are answered before their body is complete.
  const refused = await Promise.race(sockets.map((socket) => text(socket)));
  expect(refused).toMatch(/^HTTP\/1\.1 429 /);
  expect(refused).toMatch(/^retry-after: \d+/im);
  const definition = { name: "x", steps: [] };
  expect((await post("/v1/workflows/validate", { definition }, { as: bob })).status).toBe(200);
  for (const socket of sockets) socket.destroy();
  // Closing the connections frees the memory.
  await expect.poll(async () => (await post("/v1/workflows/validate", { definition: "x".repeat(500_000) }, { as: ada })).status).toBe(200);
  expect(defects).toEqual([]);
});

test("limits the bodies of all callers together", () => {
  const bodies = createBodyBudget({ perKeyBytes: 10, totalBytes: 15 });
  const first = bodies.hold("ada");
  first.add(10);
  expect(() => first.add(1)).toThrow(expect.objectContaining({ code: "busy" }));
  using second = bodies.hold("bob");
  expect(() => second.add(6)).toThrow(expect.objectContaining({ code: "unavailable" }));
  first[Symbol.dispose]();
  second.add(10);
});
