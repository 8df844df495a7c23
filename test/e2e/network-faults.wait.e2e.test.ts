import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createInside, type Inside } from "../support/network/inside.ts";
import { ports } from "../support/network/internet.ts";
import { useMachine } from "../support/network/run-in.ts";
import { settled } from "../support/settled.ts";

const machine = useMachine();
let inside: Inside;
beforeAll(async () => {
  const rules = [80, 443, ports.echo, ports.mute, ports.flood].join("+");
  inside = await createInside(machine, ["--pids", "4000", "--network", `api.example.com:${rules}`]);
});
afterAll(() => inside.remove());

const MIB = 2 ** 20;
async function keeper(): Promise<number> {
  const { stdout } = await machine.run(["net", "show", inside.id, "--json"]);
  return (JSON.parse(stdout) as { servedBy: number }).servedBy;
}
const memoryMib = (pid: number) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
const python = (script: string) => machine.start(["exec", "--sandbox", inside.id, "--", "python3", "-c", script]);
/**
 * Polls until no connection to the world is open. The request of a client that ended is given up only a few seconds
 * later.
 */
async function allClosed(): Promise<void> {
  await expect.poll(() => machine.internet.world.open(), { message: "connections to the world" }).toBe(0);
}

/**
 * Opens a number of tunnels at once, sends a word through each when all are open, and prints how many had each outcome.
 */
const many = (count: number) => `
import asyncio, collections, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
async def one(ready, go):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", 19080)
        writer.write(b"CONNECT api.example.com:${ports.echo} HTTP/1.1\\r\\nHost: api.example.com:${ports.echo}\\r\\n\\r\\n")
        status = (await reader.readuntil(b"\\r\\n\\r\\n")).split()[1].decode()
        ready.release()
        if status != "200": return status
        await go.wait()
        writer.write(b"hello")
        answer = await reader.readexactly(5)
        writer.close()
        return answer.decode()
    except Exception as error:
        ready.release()
        return type(error).__name__
async def main():
    ready, go = asyncio.Semaphore(0), asyncio.Event()
    tasks = [asyncio.create_task(one(ready, go)) for _ in range(${count})]
    for _ in tasks: await ready.acquire()
    go.set()
    print(dict(collections.Counter(await asyncio.gather(*tasks))))
asyncio.run(main())
`;

describe("many connections at once", () => {
  test("all work, up to a thousand", async () => {
    expect((await python(many(1000)).finished).stdout).toBe("{'hello': 1000}\n");
    await allClosed();
  });

  test("get an error beyond the limit, while the others and later ones work", async () => {
    const { stdout, stderr } = await python(many(1500)).finished;
    const { hello = 0, ...others } = JSON.parse((stdout || "{}").replaceAll("'", '"')) as Record<string, number>;
    expect(hello, stdout + stderr).toBeGreaterThanOrEqual(1000);
    expect(hello).toBeLessThan(1500);
    expect(Object.keys(others)).toEqual(["429"]);
    await allClosed();
    expect((await inside.sh("curl -sS -o /dev/null -w %{http_code} http://api.example.com/")).stdout).toBe("200");
  });
});

describe("backpressure", () => {
  /** Opens a tunnel to a port, does `work` with it, and reads nothing more for a minute. */
  const stuck = (port: number, work: string) => `
import socket, sys, time
s = socket.create_connection(("127.0.0.1", 19080))
s.sendall(b"CONNECT api.example.com:${port} HTTP/1.1\\r\\nHost: api.example.com:${port}\\r\\n\\r\\n")
assert b" 200 " in s.recv(1000)
${work}
time.sleep(60)
`;

  test("slows the server and bounds memory if the client inside does not read", async () => {
    const { world } = machine.internet;
    const pid = await keeper();
    await inside.ok(`curl -sS http://api.example.com/big?bytes=${50 * MIB} | wc -c`);
    const before = memoryMib(pid);
    const readers = [1, 2, 3, 4].map(() => python(stuck(ports.flood, 's.recv(100000); print("stuck", flush=True)')));
    await Promise.all(readers.map((reader) => reader.says(/stuck/)));
    const sent = await settled(() => world.floodedBytes());
    expect(sent / MIB).toBeLessThan(100);
    expect(memoryMib(pid) - before).toBeLessThan(48);
    for (const reader of readers) reader.child.kill("SIGTERM");
    await Promise.all(readers.map((reader) => reader.finished));
    await allClosed();
  });

  test("slows the client inside and bounds memory if the server does not read", async () => {
    const pid = await keeper();
    const before = memoryMib(pid);
    const send = `
s.settimeout(2)
sent = 0
try:
    while True: sent += s.send(b"x" * 65536)
except socket.timeout: print("stuck after", sent, flush=True)`;
    const sender = python(stuck(ports.mute, send));
    const bytes = Number(/after (\d+)/.exec(await sender.says(/stuck after \d+/))?.[1]);
    expect(bytes / MIB).toBeLessThan(40);
    expect(memoryMib(pid) - before).toBeLessThan(32);
    // The data in flight must still be delivered, as on any connection, so the server has to close it.
    sender.child.kill("SIGTERM");
    await sender.finished;
    await machine.internet.world.reset();
    await allClosed();
  });
});

describe("a connection that breaks", () => {
  const requests = ["http://api.example.com/die?bytes=300000", "https://api.example.com/die?bytes=300000"];

  test.each(requests)("is an error for the client if the server dies in the middle of %s", async (url) => {
    const { stdout } = await inside.sh(`curl -sS -o /tmp/part ${url}; echo $?; wc -c < /tmp/part`);
    expect(stdout).toMatch(/^(18|56)\n/);
  });

  test("is an error for the reader of a stream", async () => {
    for (const scheme of ["http", "https"]) {
      const started = machine.start([
        "exec",
        "--sandbox",
        inside.id,
        "--",
        "curl",
        "-sSN",
        `${scheme}://api.example.com/stream?pieces=1000&ms=20`,
      ]);
      await started.says(/data: 3/);
      await machine.internet.world.reset();
      expect((await started.finished).code, scheme).toBeGreaterThan(0);
    }
  });

  test("is an error even if the response has no length", async () => {
    const tunnelled = "curl -sS -p --max-time 5 http://api.example.com/abort";
    for (const script of ["curl -sS --max-time 5 http://api.example.com/abort", tunnelled])
      expect((await inside.sh(script)).code, script).toBe(56);
  });

  test("closes its upstream if the client left, whether it was answered or not", async () => {
    await allClosed();
    for (const path of [
      "http://api.example.com/hang",
      "https://api.example.com/hang",
      "http://api.example.com/stream?pieces=10000&ms=20",
    ]) {
      expect((await inside.sh(`curl -sSN -o /dev/null --max-time 1 '${path}'`)).code, path).toBe(28);
      await allClosed();
    }
  });

  test("stays open in one direction if only the other has ended", async () => {
    const half = `
import socket
s = socket.create_connection(("127.0.0.1", 19080))
s.sendall(b"CONNECT api.example.com:${ports.echo} HTTP/1.1\\r\\nHost: api.example.com:${ports.echo}\\r\\n\\r\\n")
assert b" 200 " in s.recv(1000)
s.sendall(b"x" * 3000000)
s.shutdown(socket.SHUT_WR)
got = 0
while True:
    piece = s.recv(65536)
    if not piece: break
    got += len(piece)
print(got)`;
    const { stdout, stderr } = await python(half).finished;
    expect(stdout, stderr).toBe("3000000\n");
    await allClosed();
  });

  test("is reported at once for a closed port and an unknown host", async () => {
    await machine.run(["net", "allow", inside.id, "api.example.com:81", "no-such-name.example.com"]);
    expect(await inside.ok("curl -sS --max-time 5 http://api.example.com:81/ -w ' %{http_code}'")).toMatch(/refused|reach.* 502$/is);
    expect(await inside.ok("curl -sS --max-time 5 http://no-such-name.example.com/ -w ' %{http_code}'")).toMatch(
      /unknown host[\s\S]* 502$/i,
    );
  });
});
