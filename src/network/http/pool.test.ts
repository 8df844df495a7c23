import { duplexPair } from "node:stream";
import { expect, test } from "vitest";
import { UpstreamPool } from "./pool.ts";
import { Upstream } from "./upstream.ts";

const FOR_EVER = Number.POSITIVE_INFINITY;
const quiet = () => new Promise((resolve) => setImmediate(resolve));

function upstream(key = "k") {
  const [near, far] = duplexPair();
  return { upstream: new Upstream(near, key), near, far };
}

test("takes the last used connection of a key, and only once", () => {
  const pool = new UpstreamPool();
  const [a, b] = [upstream(), upstream()];
  pool.put(a.upstream);
  pool.put(b.upstream);
  expect(pool.take("other", FOR_EVER)).toBeNull();
  expect(pool.take("k", FOR_EVER)).toBe(b.upstream);
  expect(pool.take("k", FOR_EVER)).toBe(a.upstream);
  expect(pool.take("k", FOR_EVER)).toBeNull();
  expect(pool.size).toBe(0);
});

test("above its limits, destroys the connection that was idle for longest", () => {
  const pool = new UpstreamPool({ perKeyMax: 2, totalMax: 3 });
  const all = ["a", "a", "a", "b", "c"].map((key) => {
    const connection = upstream(key);
    pool.put(connection.upstream);
    return connection;
  });
  expect(pool.size).toBe(3);
  expect(all.map(({ near }) => near.destroyed)).toEqual([true, true, false, false, false]);
  pool.close();
});

test.each([
  ["sends something", (far: ReturnType<typeof upstream>["far"]) => void far.write("HTTP/1.1 408 Request Timeout\r\n\r\n")],
  ["ends", (far: ReturnType<typeof upstream>["far"]) => void far.end()],
])("destroys an idle connection that %s", async (_name, act) => {
  const pool = new UpstreamPool();
  const { upstream: idle, near, far } = upstream();
  pool.put(idle);
  act(far);
  await quiet();
  expect(near.destroyed).toBe(true);
  expect(pool.size).toBe(0);
});

test("forgets an idle connection that breaks", async () => {
  const pool = new UpstreamPool();
  const { upstream: idle, near } = upstream();
  pool.put(idle);
  near.destroy(new Error("reset"));
  await quiet();
  expect(pool.size).toBe(0);
  expect(pool.take("k", FOR_EVER)).toBeNull();
});

test("destroys idle connections in time, sooner if the server said so", async () => {
  const pool = new UpstreamPool({ idleMs: 40 });
  const { upstream: idle, near } = upstream();
  pool.put(idle);
  await new Promise((resolve) => near.once("close", resolve));
  expect(pool.size).toBe(0);
  const short = upstream();
  pool.put(short.upstream, 1000);
  expect(short.near.destroyed).toBe(true);
});

test("keeps a connection that was idle for longer than the caller accepts", async () => {
  const pool = new UpstreamPool();
  const { upstream: idle } = upstream();
  pool.put(idle);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(pool.take("k", 1)).toBeNull();
  expect(pool.take("k", FOR_EVER)).toBe(idle);
});

test("drop destroys matching connections, close all present and later ones", () => {
  const pool = new UpstreamPool();
  const [a, b, c] = [upstream("a"), upstream("b"), upstream("c")];
  pool.put(a.upstream);
  pool.put(b.upstream);
  pool.drop((key) => key === "a");
  expect([a.near.destroyed, b.near.destroyed]).toEqual([true, false]);
  pool.close();
  pool.put(c.upstream);
  expect([b.near.destroyed, c.near.destroyed]).toEqual([true, true]);
  expect(pool.size).toBe(0);
});
