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
/** A client that ended may still wait for its answer, so what it asked for is given up a few seconds later. */
async function allClosed(): Promise<void> {
  await expect.poll(() => machine.internet.world.open(), { message: "connections to the world" }).toBe(0);
}

/** Opens so many tunnels at once, says something in each when all are open, and tells how it went for how many. */
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

describe("many at once", () => {
  test("a thousand connections", async () => {
    expect((await python(many(1000)).finished).stdout).toBe("{'hello': 1000}\n");
    await allClosed();
  });

  test("more than there may be are told so, the others work, and so does the next one", async () => {
    const { stdout, stderr } = await python(many(1500)).finished;
    const { hello = 0, ...others } = JSON.parse((stdout || "{}").replaceAll("'", '"')) as Record<string, number>;
    expect(hello, stdout + stderr).toBeGreaterThanOrEqual(1000);
    expect(hello).toBeLessThan(1500);
    expect(Object.keys(others)).toEqual(["429"]);
    await allClosed();
    expect((await inside.sh("curl -sS -o /dev/null -w %{http_code} http://api.example.com/")).stdout).toBe("200");
  });
});

describe("somebody does not read", () => {
  /** A tunnel to a port, of which so many bytes are read, then none. */
  const stuck = (port: number, work: string) => `
import socket, sys, time
s = socket.create_connection(("127.0.0.1", 19080))
s.sendall(b"CONNECT api.example.com:${port} HTTP/1.1\\r\\nHost: api.example.com:${port}\\r\\n\\r\\n")
assert b" 200 " in s.recv(1000)
${work}
time.sleep(60)
`;

  test("inside: the server is slowed down, and the host keeps a few megabytes at most", async () => {
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

  test("outside: whoever sends is slowed down, too", async () => {
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
    // What it sent is still to be delivered, as with any connection; so the server has to end it.
    sender.child.kill("SIGTERM");
    await sender.finished;
    await machine.internet.world.reset();
    await allClosed();
  });
});

describe("somebody goes away", () => {
  const requests = ["http://api.example.com/die?bytes=300000", "https://api.example.com/die?bytes=300000"];

  test.each(requests)("a server that dies in the middle of %s is not a server that is done", async (url) => {
    const { stdout } = await inside.sh(`curl -sS -o /tmp/part ${url}; echo $?; wc -c < /tmp/part`);
    expect(stdout).toMatch(/^(18|56)\n/);
  });

  test("a stream that breaks off has no end", async () => {
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

  test("an answer that has no length and breaks off is not one that ended", async () => {
    const tunnelled = "curl -sS -p --max-time 5 http://api.example.com/abort";
    for (const script of ["curl -sS --max-time 5 http://api.example.com/abort", tunnelled])
      expect((await inside.sh(script)).code, script).toBe(56);
  });

  test("a client that goes takes its upstream with it, whether it was answered or not", async () => {
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

  test("one side that is done does not end the other", async () => {
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

  test("a port that nobody listens on, a name that is none: said at once", async () => {
    await machine.run(["net", "allow", inside.id, "api.example.com:81", "no-such-name.example.com"]);
    expect(await inside.ok("curl -sS --max-time 5 http://api.example.com:81/ -w ' %{http_code}'")).toMatch(/refused|reach.* 502$/is);
    expect(await inside.ok("curl -sS --max-time 5 http://no-such-name.example.com/ -w ' %{http_code}'")).toMatch(
      /unknown host[\s\S]* 502$/i,
    );
  });
});
