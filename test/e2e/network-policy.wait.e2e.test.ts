import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createInside, type Exchanged, type Inside, socksReply, ways } from "../support/network/inside.ts";
import { PUBLIC } from "../support/network/internet.ts";
import { MACHINE_ADDRESS, MACHINE_ADDRESS_6, MACHINE_PRIVATE_ADDRESS } from "../support/network/namespaces.ts";
import { useMachine } from "../support/network/run-in.ts";

const machine = useMachine();
const seen = () => machine.internet.world.seen({ take: true });
const packets = () => machine.internet.world.packets();

/**
 * Returns for each target the status of a request, the status of a tunnel, the SOCKS reply, and the reason that the
 * response to the request names.
 */
async function tryAll(inside: Inside, targets: readonly string[]): Promise<Record<string, string>> {
  const answers = await inside.exchange(targets.flatMap((target) => [ways.request(target), ways.tunnel(target), ways.socks(target)]));
  const status = (index: number) => answers[index]?.text.slice(9, 12);
  const reason = (index: number) => /x-caisson-denied: (\w+)/i.exec(answers[index]?.text ?? "")?.[1] ?? "";
  const results = targets.map((target, index): [string, string] => {
    const [request, tunnel, socks] = [3 * index, 3 * index + 1, 3 * index + 2] as const;
    return [target, `${status(request)} ${status(tunnel)} ${socksReply(answers[socks] as never)} ${reason(request)}`.trim()];
  });
  return Object.fromEntries(results);
}

describe("private and metadata addresses (N01)", () => {
  const private4 = ["10.0.0.5", "192.168.7.7", "172.16.3.3", "100.64.1.1", "127.0.0.1", "127.9.9.9"];
  const never4 = ["169.254.169.254", "169.254.7.7", "0.0.0.0", "255.255.255.255", "224.0.0.1", "100.100.100.200"];
  const never6 = ["[::]", "[fd00:ec2::254]", "[fe80::1]", "[ff02::1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]"];
  const private6 = ["[::1]", "[fd12::1]", "[::ffff:10.0.0.5]", "[64:ff9b::a00:5]", "[2002:a00:5::]"];
  const writings = ["2130706433", "0x7f.1", "017700000001", "127.1", "10.5", "0xa9fea9fe", "[0:0:0:0:0:ffff:7f00:1]"];
  const own = [MACHINE_ADDRESS, MACHINE_PRIVATE_ADDRESS, `[${MACHINE_ADDRESS_6}]`];
  const named = [
    "private",
    "home",
    "metadata",
    "loopback",
    "loopback6",
    "mapped",
    "unique-local",
    "nat64",
    "unspecified",
    "carrier",
    "broadcast",
  ];
  const names = [...named, "machine", "machine-private"].map((name) => `${name}.example.com`);
  const all = [...private4, ...never4, ...never6, ...private6, ...writings, ...own, ...names];
  let open: Inside;
  let allowed: Inside;
  beforeAll(async () => {
    open = await createInside(machine, ["--network", "open"]);
    const privately = [...private4, ...own, ...private6, ...never4, ...never6, "metadata.example.com"].map((host) => `private ${host}`);
    allowed = await createInside(
      machine,
      [...all.filter((host) => !writings.includes(host)), ...privately].flatMap((rule) => ["--network", rule]),
    );
  });
  afterAll(async () => {
    await open.remove();
    await allowed.remove();
  });
  const noneReached = async () => {
    expect((await seen()).connections).toEqual([]);
    expect((await machine.internet.machine.seen({ take: true })).connections).toEqual([]);
  };

  test("are unreachable by any name, notation or protocol, even with an open network", async () => {
    await seen();
    const results = await tryAll(open, [...all, "localhost", "LOCALHOST."]);
    for (const [target, result] of Object.entries(results)) expect(result, target).toBe("403 403 2 private_address");
    await noneReached();
  });

  test("need a rule that says private, and metadata stays unreachable even then", async () => {
    expect(Object.values(await tryAll(allowed, names))).toEqual(names.map(() => "403 403 2 private_address"));
    await noneReached();
    expect(Object.values(await tryAll(allowed, [...never4, ...never6]))).toEqual(
      [...never4, ...never6].map(() => "403 403 2 private_address"),
    );
    await noneReached();
    expect(await tryAll(allowed, ["10.0.0.5", "192.168.7.7"])).toEqual({ "10.0.0.5": "200 200 0", "192.168.7.7": "200 200 0" });
    expect((await seen()).connections).toHaveLength(6);
    expect((await tryAll(allowed, [MACHINE_ADDRESS]))[MACHINE_ADDRESS]).toMatch(/^200 /);
    expect((await machine.internet.machine.seen({ take: true })).connections).not.toEqual([]);
    await seen();
  });

  test("do not include public ones, which are reachable over IPv4 and IPv6", async () => {
    const targets = ["api.example.com", PUBLIC, "six.example.com", "both.example.com", "[2606:4700::1111]"];
    expect(Object.values(await tryAll(open, targets))).toEqual(targets.map(() => "200 200 0"));
    expect(new Set((await seen()).connections.map(({ address }) => address))).toContain("2606:2800:220:1::34");
  });
});

describe("a host name that resolves differently the second time (N02)", () => {
  let inside: Inside;
  beforeAll(async () => {
    inside = await createInside(machine, ["--network", "rebind.example.com,mixed.example.com"]);
  });
  afterAll(() => inside.remove());
  const went = (answer: Exchanged | undefined) =>
    answer && socksReply(answer) !== undefined ? `socks ${socksReply(answer)}` : answer?.text.slice(9, 12);
  const addresses = async () => (await seen()).connections.map(({ address }) => address);

  test("is reached only at the address that was checked", async () => {
    for (const way of [ways.request, ways.tunnel, ways.socks]) {
      await machine.internet.world.setName("rebind.example.com", [[PUBLIC], ["10.0.0.5"]]);
      await seen();
      const [first, second, third] = await inside.exchange([
        way("rebind.example.com"),
        way("rebind.example.com"),
        way("rebind.example.com"),
      ]);
      expect(went(first)).toMatch(/^(200|socks 0)$/);
      for (const later of [second, third]) expect(went(later)).toMatch(/^(403|socks 2)$/);
      expect(await addresses()).toEqual([PUBLIC]);
    }
  });

  test("is never reached at a private address among public ones", async () => {
    await tryAll(inside, ["mixed.example.com", "mixed.example.com", "mixed.example.com"]);
    expect(await addresses()).not.toContain("10.0.0.5");
  });
});

describe("traffic that is not allowed", () => {
  let inside: Inside;
  let listed: Inside;
  beforeAll(async () => {
    inside = await createInside(machine, []);
    listed = await createInside(machine, ["--network", "api.example.com"]);
  });
  afterAll(async () => {
    await inside.remove();
    await listed.remove();
  });

  /** Prints the outcome of each attempt, and waits no longer than necessary. */
  const leaks = `
import socket, subprocess
def attempt(name, work):
    try: print(name, "went", work())
    except Exception as error: print(name, "failed", type(error).__name__, error)
def tcp(family, address, port=80):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2); s.connect((address, port)); return s.getpeername()
def udp(family, address, port=53):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(1); s.sendto(b"secret", (address, port)); return s.recv(100)
def icmp(family, protocol):
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as s:
        s.sendto(bytes([8 if family == socket.AF_INET else 128, 0, 0, 0, 0, 1, 0, 1]), ("${PUBLIC}" if family == socket.AF_INET else "2606:4700::1111", 0)); return "sent"
def raw(family, kind, protocol):
    with socket.socket(family, kind, protocol) as s: return "opened"
for address in ("${PUBLIC}", "10.0.0.5", "169.254.169.254", "${MACHINE_ADDRESS}", "81.2.69.141", "1.1.1.53"):
    attempt("tcp " + address, lambda: tcp(socket.AF_INET, address))
    attempt("udp " + address, lambda: udp(socket.AF_INET, address))
for address in ("2606:4700::1111", "fe80::1", "${MACHINE_ADDRESS_6}"):
    attempt("tcp " + address, lambda: tcp(socket.AF_INET6, address))
    attempt("udp " + address, lambda: udp(socket.AF_INET6, address))
attempt("icmp", lambda: icmp(socket.AF_INET, socket.IPPROTO_ICMP))
attempt("icmp6", lambda: icmp(socket.AF_INET6, socket.IPPROTO_ICMPV6))
attempt("raw", lambda: raw(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW))
attempt("packet", lambda: raw(socket.AF_PACKET, socket.SOCK_RAW, 768))
attempt("name", lambda: socket.getaddrinfo("c2VjcmV0.api.example.com", 80))
attempt("local name", lambda: socket.getaddrinfo("c2VjcmV0.local", 80))
`;

  test.each(["none", "a list"])("cannot bypass the proxy over TCP, UDP, ICMP, IPv6 or DNS, with %s (N04)", async (what) => {
    const sandbox = what === "none" ? inside : listed;
    await sandbox.ok("true");
    const before = await packets();
    const { stdout } = await sandbox.run(["python3", "-c", leaks], { input: "" });
    const lines = stdout.trim().split("\n");
    expect(lines).toHaveLength(24);
    expect(lines.filter((line) => line.includes(" went "))).toEqual([]);
    expect(await packets()).toBe(before);
  });

  test("cannot leave in the names of denied hosts (N03)", async () => {
    await seen();
    const before = await packets();
    const label = Buffer.from("a secret of sixty-three bytes at most, in a label").toString("hex").slice(0, 63);
    const names = [
      `${label}.evil.example.net`,
      `${label}.example.com`,
      `${label}.api.example.com`,
      "api.example.com.evil.example.net",
      `${label}.localhost`,
    ];
    for (const [name, result] of Object.entries(await tryAll(listed, names))) expect(result, name).toBe("403 403 2 host_not_allowed");
    // Invalid names, and tricks to hide a name.
    const odd = [
      `${"a.".repeat(200)}com`,
      "api.example.com%00.evil.example.net",
      "api.example.com%2eevil.example.net",
      "evil.example.net%23.api.example.com",
    ];
    for (const [name, result] of Object.entries(await tryAll(listed, odd))) expect(result, name).toMatch(/^(400|403) (400|403) \d/);
    expect(await packets()).toBe(before);
    expect((await seen()).questions).toEqual([]);
  });

  test("cannot reach another port of an allowed host", async () => {
    const before = await packets();
    const answers = await listed.exchange([
      ways.request("api.example.com:8080"),
      ways.tunnel("api.example.com", 22),
      ways.socks("api.example.com", 25),
    ]);
    expect(answers.map(({ text }) => text.slice(9, 12)).slice(0, 2)).toEqual(["403", "403"]);
    expect(socksReply(answers[2] as never)).toBe(2);
    expect(await packets()).toBe(before);
  });

  test("cannot reach another sandbox (N13)", async () => {
    const serving = machine.start(["exec", "--sandbox", listed.id, "--", "python3", "-m", "http.server", "9999", "--bind", "0.0.0.0"]);
    try {
      for (let tries = 0; tries < 50; tries++) if ((await listed.sh("curl -s -o /dev/null http://127.0.0.1:9999/")).code === 0) break;
      const address = (await listed.ok("hostname -I 2>/dev/null || true")).trim();
      expect(address).toBe("");
      const other = await createInside(machine, ["--network", "open"]);
      const targets = ["127.0.0.1:9999", "localhost:9999", `${MACHINE_ADDRESS}:9999`, `${MACHINE_PRIVATE_ADDRESS}:9999`];
      const answers = await other.exchange(targets.map((target) => ways.request(target)));
      expect(answers.map(({ text }) => text.slice(9, 12))).toEqual(targets.map(() => "403"));
      expect((await other.sh("curl -s --max-time 2 --noproxy '*' http://127.0.0.1:9999/")).code).toBe(7);
      await other.remove();
    } finally {
      serving.child.kill("SIGTERM");
      await serving.finished;
    }
  });
});
