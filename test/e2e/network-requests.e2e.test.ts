import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createInside, type Inside } from "../support/network/inside.ts";
import { PUBLIC } from "../support/network/internet.ts";
import { useMachine } from "../support/network/run-in.ts";

const machine = useMachine();
const seen = () => machine.internet.world.seen({ take: true });
let inside: Inside;
beforeAll(async () => {
  inside = await createInside(machine, ["--network", "api.example.com,GET|POST other.example.com/api,api.example.com:7000"]);
});
afterAll(() => inside.remove());

describe("invalid requests (N09)", () => {
  const target = "http://api.example.com";
  const head = (lines: readonly string[], body = "") => `${lines.join("\r\n")}\r\n\r\n${body}`;
  const smuggled = "GET http://api.example.com/smuggled HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
  const bad: Record<string, string> = {
    "a line feed alone": `GET ${target}/ HTTP/1.1\nHost: api.example.com\n\n`,
    "a carriage return in a value": head([`GET ${target}/ HTTP/1.1`, "Host: api.example.com", "X: a\rb: c"]),
    "a line feed in a value": head([`GET ${target}/ HTTP/1.1`, "Host: api.example.com", "X: a\nb: c"]),
    "a NUL": head([`GET ${target}/ HTTP/1.1`, "Host: api.example.com", "X: a\0b"]),
    "a space before the colon": head([`GET ${target}/ HTTP/1.1`, "Host: api.example.com", "X : a"]),
    "a folded line": head([`GET ${target}/ HTTP/1.1`, "Host: api.example.com", "X: a", " b: c"]),
    "no colon": head([`GET ${target}/ HTTP/1.1`, "Host: api.example.com", "nonsense"]),
    "two hosts": head([`GET ${target}/ HTTP/1.1`, "Host: api.example.com", "Host: evil.example.net"]),
    "a host that is not the target's": head([`GET ${target}/ HTTP/1.1`, "Host: evil.example.net"]),
    "two lengths": head(
      [`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Content-Length: 5", "Content-Length: 6"],
      `hello${smuggled}`,
    ),
    "a length and a list of them": head([`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Content-Length: 5, 6"], `hello${smuggled}`),
    "a length with a sign": head([`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Content-Length: +5"], `hello${smuggled}`),
    "a length in hexadecimal": head([`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Content-Length: 0x5"], `hello${smuggled}`),
    "a length and chunks": head(
      [`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Content-Length: 4", "Transfer-Encoding: chunked"],
      `0\r\n\r\n${smuggled}`,
    ),
    "chunks that are not last": head(
      [`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Transfer-Encoding: chunked, identity"],
      `0\r\n\r\n${smuggled}`,
    ),
    "chunks twice": head(
      [`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
      `0\r\n\r\n${smuggled}`,
    ),
    "an unknown coding": head([`POST ${target}/ HTTP/1.1`, "Host: api.example.com", "Transfer-Encoding: xchunked"], `0\r\n\r\n${smuggled}`),
    "chunks in HTTP/1.0": head([`POST ${target}/ HTTP/1.0`, "Host: api.example.com", "Transfer-Encoding: chunked"], `0\r\n\r\n${smuggled}`),
    "an unknown version": head([`GET ${target}/ HTTP/3.7`, "Host: api.example.com"]),
    "no version": `GET ${target}/\r\n\r\n`,
    "two spaces": head([`GET  ${target}/ HTTP/1.1`, "Host: api.example.com"]),
    "an origin-form target": head(["GET /etc/passwd HTTP/1.1", "Host: api.example.com"]),
    "credentials in the target": head(["GET http://user:pass@api.example.com/ HTTP/1.1", "Host: api.example.com"]),
    "a host hidden behind credentials": head(["GET http://api.example.com@evil.example.net/ HTTP/1.1", "Host: api.example.com"]),
    "a host hidden behind a backslash": head(["GET http://evil.example.net\\@api.example.com/ HTTP/1.1", "Host: api.example.com"]),
    "a fragment": head(["GET http://evil.example.net#@api.example.com/ HTTP/1.1", "Host: api.example.com"]),
    "another scheme": head(["GET file:///etc/passwd HTTP/1.1", "Host: api.example.com"]),
    ftp: head(["GET ftp://api.example.com/ HTTP/1.1", "Host: api.example.com"]),
    "https without a tunnel": head(["GET https://api.example.com/ HTTP/1.1", "Host: api.example.com"]),
    "a port out of range": head(["CONNECT api.example.com:65616 HTTP/1.1", "Host: api.example.com"]),
    "a tunnel without a port": head(["CONNECT api.example.com HTTP/1.1", "Host: api.example.com"]),
    "a tunnel to a path": head(["CONNECT api.example.com:443/x HTTP/1.1", "Host: api.example.com"]),
    "an invalid method": head([`G(T ${target}/ HTTP/1.1`, "Host: api.example.com"]),
    "HTTP/2's preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "bytes that are nothing": "\x01\x02\x03\x04\r\n\r\n",
    "a head without an end": `GET ${target}/ HTTP/1.1\r\n${"X: y\r\n".repeat(30_000)}\r\n`,
  };

  test("are answered with an error or a closed connection, and never forwarded", async () => {
    await seen();
    const names = Object.keys(bad);
    const answers = await inside.exchange(names.map((name) => ({ send: bad[name] as string, shut: true })));
    const outcomes = Object.fromEntries(
      answers.map(({ text, end }, index) => [names[index], `${text.split("\r\n")[0]?.slice(0, 12)} ${end}`]),
    );
    for (const name of names) expect(outcomes[name], name).toMatch(/^HTTP\/1\.1 4\d\d? (closed|reset)$|^ (closed|reset)$/);
    const { requests } = await seen();
    expect(requests).toEqual([]);
  });
});

describe("the destination of a tunnel", () => {
  const hello = (name: string) => `openssl s_client -proxy 127.0.0.1:19080 -connect api.example.com:443 ${name} </dev/null 2>&1; true`;

  test("must match the name in the TLS hello", async () => {
    await seen();
    expect(await inside.ok(hello("-servername evil.example.net"))).toMatch(/alert|unrecognized/i);
    const { hellos, connections } = await seen();
    expect(hellos).toEqual([]);
    expect(connections.filter(({ address }) => address !== PUBLIC)).toEqual([]);
    expect(await inside.ok(hello("-servername api.example.com"))).toContain("subject=CN = api.example.com");
    expect((await machine.run(["net", "log", inside.id, "--denied"])).stdout).toMatch(/api\.example\.com.*evil|name/);
  });

  test("must match the host of a request in it", async () => {
    await seen();
    const connect = "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n";
    const [own, other] = await inside.exchange([
      { send: `${connect}GET /own HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n` },
      { send: `${connect}GET /other HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n` },
    ]);
    expect(own?.text).toMatch(/^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 200 /);
    expect(other?.text).toMatch(/^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 4\d\d /);
    expect((await seen()).requests.map(({ path }) => path)).toEqual(["/own"]);
  });

  test("may speak another protocol than HTTP on an allowed port", async () => {
    const [echo] = await inside.exchange([
      { send: "CONNECT api.example.com:7000 HTTP/1.1\r\nHost: api.example.com:7000\r\n\r\nping\n", until: "ping\n" },
    ]);
    expect(echo).toMatchObject({ end: "enough", text: expect.stringMatching(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nping\n$/) });
  });
});
