import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { encodeRequestHead, encodeResponseHead, parseRequestHead, parseResponseHead, requestTarget } from "./head.ts";
import { HEAD_BYTES_MAX, HEADERS_MAX, type Header, HttpSyntaxError, header } from "./headers.ts";

const request = (text: string) => parseRequestHead(Buffer.from(text, "latin1"));
const response = (text: string) => parseResponseHead(Buffer.from(text, "latin1"));
const get = (headers: string) => `GET / HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n`;

describe("strict head parsing", () => {
  const refused: Record<string, string> = {
    "two lengths that disagree": get("Content-Length: 5\r\nContent-Length: 6"),
    "two lengths that agree": get("Content-Length: 5\r\nContent-Length: 5"),
    "a list of lengths": get("Content-Length: 5, 5"),
    "a negative length": get("Content-Length: -5"),
    "a length with a plus": get("Content-Length: +5"),
    "a hexadecimal length": get("Content-Length: 0x5"),
    "a length with a dot": get("Content-Length: 5.0"),
    "a length with an exponent": get("Content-Length: 1e3"),
    "a length with a space inside": get("Content-Length: 5 5"),
    "an empty length": get("Content-Length: "),
    "a length beyond what numbers can hold": get("Content-Length: 9007199254740993"),
    "a length in non-ASCII digits": get("Content-Length: \xb25"),
    "CL.TE": get("Content-Length: 5\r\nTransfer-Encoding: chunked"),
    "TE.CL": get("Transfer-Encoding: chunked\r\nContent-Length: 5"),
    "two encodings": get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    "TE.TE with another": get("Transfer-Encoding: chunked\r\nTransfer-Encoding: x"),
    "an encoding that is not the last": get("Transfer-Encoding: chunked, identity"),
    "an encoding before chunked": get("Transfer-Encoding: gzip, chunked"),
    identity: get("Transfer-Encoding: identity"),
    xchunked: get("Transfer-Encoding: xchunked"),
    "chunked in quotes": get('Transfer-Encoding: "chunked"'),
    "chunked with a parameter": get("Transfer-Encoding: chunked;q=1"),
    "chunked with a vertical tab": get("Transfer-Encoding: \x0bchunked"),
    "chunked with a no-break space": get("Transfer-Encoding: \xa0chunked"),
    "an empty encoding": get("Transfer-Encoding:"),
    "a space before the colon": get("Transfer-Encoding : chunked"),
    "a tab before the colon": get("Transfer-Encoding\t: chunked"),
    "a name that begins with a space": get(" Transfer-Encoding: chunked"),
    "a folded value": get("X: a\r\n chunked"),
    "a value folded with a tab": get("X: a\r\n\tchunked"),
    "a folded encoding": get("Transfer-Encoding:\r\n chunked"),
    "a bare LF between headers": get("X: a\nTransfer-Encoding: chunked"),
    "a bare CR between headers": get("X: a\rTransfer-Encoding: chunked"),
    "a NUL in a value": get("X: a\0b"),
    "a NUL in a name": get("X\0: a"),
    "an escape in a value": get("X: a\x1bb"),
    "a DEL in a value": get("X: a\x7fb"),
    "a line without a colon": get("X"),
    "an empty name": get(": a"),
    "a name in brackets": get("[X]: a"),
    "a non-ASCII name": get("\xe4: a"),
    "an encoding in HTTP/1.0": "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "no Host": "GET / HTTP/1.1\r\n\r\n",
    "an empty Host": "GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "two Hosts": get("Host: a"),
    "two Hosts in two cases": get("hOST: b"),
    "a Host with credentials": "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
    "a Host with a path": "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "a Host with a comma": "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",
    "a Host with a port above 65535": "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n",
    "a Host with port 0": "GET / HTTP/1.1\r\nHost: a:0\r\n\r\n",
    "a URL for another Host": "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "a URL for another port": "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "a URL with credentials": "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n",
    "a URL without a host": "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
    "a URL of another scheme": "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "a URL with a backslash in its host": "GET http://a\\b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "a target that is not a path": "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
    "a fragment": "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
    "a space in the target": "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "a tab in the target": "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
    "a CR in the target": "GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n",
    "a line in the target": "GET /a\r\nX: HTTP/1.1\r\nHost: a\r\n\r\n",
    "an empty target": "GET  HTTP/1.1\r\nHost: a\r\n\r\n",
    "two spaces before the version": "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
    "a space after the version": "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
    "a tab instead of a space": "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "no version": "GET /\r\nHost: a\r\n\r\n",
    "HTTP/2.0": "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "HTTP/1.2": "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
    "HTTP/01.1": "GET / HTTP/01.1\r\nHost: a\r\n\r\n",
    "http/1.1": "GET / http/1.1\r\nHost: a\r\n\r\n",
    "the HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\n",
    "a star for GET": "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT to a path": "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT without a port": "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT to a URL": "CONNECT http://a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT with a body": "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n",
    "a method in brackets": "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n",
    "an endless method": `${"A".repeat(33)} / HTTP/1.1\r\nHost: a\r\n\r\n`,
    "no method": " / HTTP/1.1\r\nHost: a\r\n\r\n",
    "an empty line first": "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "bare LF throughout": "GET / HTTP/1.1\nHost: a\n\n",
    "data after the empty line": `${get("X: a")}GET`,
    "no empty line": "GET / HTTP/1.1\r\nHost: a\r\n",
    nothing: "",
    "too many headers": get(Array.from({ length: HEADERS_MAX }, () => "X: a").join("\r\n")),
    "a head that is too long": get(`X: ${"a".repeat(HEAD_BYTES_MAX)}`),
  };
  test.each(Object.entries(refused))("rejects %s", (_name, text) => {
    expect(() => request(text)).toThrow(HttpSyntaxError);
  });

  test.each([
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1 2x0 OK\r\n\r\n",
    "HTTP/1.1\t200 OK\r\n\r\n",
    "HTTP/2.0 200 OK\r\n\r\n",
    "ICY 200 OK\r\n\r\n",
    "HTTP/1.1 200 O\0K\r\n\r\n",
    "HTTP/1.1 200 OK\nX: a\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
  ])("rejects the response %j", (text) => {
    expect(() => response(text)).toThrow(HttpSyntaxError);
  });

  test("never repeats the input in its errors", () => {
    for (const text of Object.values(refused)) {
      const secret = text.replace(/X: a/g, "X: canary\0");
      try {
        request(secret);
      } catch (error) {
        expect((error as Error).message).not.toContain("canary");
      }
    }
  });
});

describe("ordinary heads", () => {
  test("parses a request with a bit of everything", () => {
    const head = request(
      "POST /p?q=\xe4 HTTP/1.1\r\nhost: Example.com:8080\r\nX-A:  a\tb \t\r\nEmpty:\r\nTransfer-Encoding: Chunked\r\n\r\n",
    );
    expect(head).toEqual({
      method: "POST",
      target: "/p?q=\xe4",
      version: "1.1",
      headers: [
        { name: "host", lower: "host", value: "Example.com:8080" },
        { name: "X-A", lower: "x-a", value: "a\tb" },
        { name: "Empty", lower: "empty", value: "" },
        { name: "Transfer-Encoding", lower: "transfer-encoding", value: "Chunked" },
      ],
    });
  });

  test.each([
    ["GET", "/a/../b?c", "a", { form: "origin", scheme: null, host: "a", port: null, path: "/a/../b?c" }],
    ["GET", "http://A.b:80/x", "a.B", { form: "absolute", scheme: "http", host: "a.b", port: 80, path: "/x" }],
    ["GET", "HTTPS://a", "a:443", { form: "absolute", scheme: "https", host: "a", port: null, path: "/" }],
    ["GET", "http://a?q", "a", { form: "absolute", scheme: "http", host: "a", port: null, path: "/?q" }],
    ["GET", "http://[::1]:8080/", "[::1]:8080", { form: "absolute", scheme: "http", host: "::1", port: 8080, path: "/" }],
    ["OPTIONS", "http://a", "a", { form: "absolute", scheme: "http", host: "a", port: null, path: "*" }],
    ["OPTIONS", "*", "a:1", { form: "asterisk", scheme: null, host: "a", port: 1, path: "*" }],
    ["CONNECT", "A:443", "other", { form: "authority", scheme: null, host: "a", port: 443, path: "" }],
    ["GET", "//other/path", "a", { form: "origin", scheme: null, host: "a", port: null, path: "//other/path" }],
  ])("finds the target of %s %s", (method, target, host, expected) => {
    expect(requestTarget(request(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`))).toEqual(expected);
  });

  test("accepts HTTP/1.0 without a Host", () => {
    expect(requestTarget(request("GET http://a/ HTTP/1.0\r\n\r\n"))).toMatchObject({ host: "a" });
    expect(requestTarget(request("GET / HTTP/1.0\r\n\r\n"))).toMatchObject({ host: "" });
  });

  test("accepts a status line without a reason, with and without the space", () => {
    expect(response("HTTP/1.1 200\r\n\r\n")).toMatchObject({ status: 200, reason: "" });
    expect(response("HTTP/1.1 200 \r\n\r\n")).toMatchObject({ status: 200, reason: "" });
    expect(response("HTTP/1.0 404 Not  Found\r\nA: b\r\n\r\n")).toMatchObject({ version: "1.0", status: 404, reason: "Not  Found" });
  });
});

const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/);
const value = fc
  .array(fc.integer({ min: 0x20, max: 0xff }), { maxLength: 40 })
  .map((codes) => String.fromCharCode(...codes.map((code) => (code === 0x7f ? 0x09 : code))).replace(/^[ \t]+|[ \t]+$/g, ""));
const usual = new Set(["host", "content-length", "transfer-encoding"]);
const headers = fc
  .array(fc.tuple(token, value), { maxLength: 20 })
  .map((pairs) => pairs.filter(([name]) => !usual.has(name.toLowerCase())).map(([name, text]) => header(name, text)));

test("parses an encoded head to the same head", () => {
  fc.assert(
    fc.property(token, fc.stringMatching(/^\/[!-"$-~\x80-\xff]{0,40}$/), headers, (method, target, more) => {
      if (method === "CONNECT") return;
      const head = { method, target, version: "1.1" as const, headers: [header("Host", "a:1"), ...more] };
      expect(parseRequestHead(encodeRequestHead(head))).toEqual(head);
    }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), value, headers, (status, reason, more) => {
      const head = { version: "1.1" as const, status, reason, headers: more };
      expect(parseResponseHead(encodeResponseHead(head))).toEqual(head);
    }),
  );
});

test("never encodes a head that would be read as more lines", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b, c) => {
      const head = {
        method: "GET",
        target: `/${a}`,
        version: "1.1" as const,
        headers: [header("Host", "a"), { name: b, lower: b, value: c }],
      };
      let bytes: Buffer;
      try {
        bytes = encodeRequestHead(head);
      } catch (error) {
        expect(error).toBeInstanceOf(HttpSyntaxError);
        return;
      }
      expect(bytes.toString("latin1").split(/[\r\n]+/)).toHaveLength(4);
    }),
  );
  for (const bad of ["a\r\nX: y", "a\nb", "a\rb", "a\0", "ł"]) {
    expect(() => encodeResponseHead({ version: "1.1", status: 200, reason: "", headers: [header("X", bad)] })).toThrow(HttpSyntaxError);
    expect(() => encodeResponseHead({ version: "1.1", status: 200, reason: bad, headers: [] })).toThrow(HttpSyntaxError);
    expect(() => encodeRequestHead({ method: bad, target: "/", version: "1.1", headers: [] })).toThrow(HttpSyntaxError);
    expect(() => encodeRequestHead({ method: "GET", target: `/${bad}`, version: "1.1", headers: [] })).toThrow(HttpSyntaxError);
    expect(() => encodeRequestHead({ method: "GET", target: "/", version: "1.1", headers: [header(bad, "")] })).toThrow(HttpSyntaxError);
  }
});

test("checks changed headers, but not parsed ones again", () => {
  const head = parseRequestHead(Buffer.from("GET / HTTP/1.1\r\nHost: a\r\nX-Own: b\r\n\r\n"));
  const [host, own] = head.headers as [Header, Header];
  expect(encodeRequestHead(head).toString()).toBe("GET / HTTP/1.1\r\nHost: a\r\nX-Own: b\r\n\r\n");
  for (const changed of [
    { ...own, value: "b\r\nX: y" },
    { ...own, name: "X\r\nY" },
  ]) {
    expect(() => encodeRequestHead({ ...head, headers: [host, changed] })).toThrow(HttpSyntaxError);
  }
});

test("reads the host of each request, whatever the previous one was", () => {
  const hostOf = (host: string) => requestTarget(parseRequestHead(Buffer.from(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)));
  for (let round = 0; round < 2; round++) {
    expect(hostOf("a:1")).toMatchObject({ host: "a", port: 1 });
    expect(() => hostOf("a:1@b")).toThrow(HttpSyntaxError);
    expect(() => hostOf("")).toThrow(HttpSyntaxError);
    expect(hostOf("B")).toMatchObject({ host: "b", port: null });
  }
});

test("rejects garbage without other errors", () => {
  const pieces = fc.constantFrom(
    "GET",
    " ",
    "/",
    "HTTP/1.1",
    "\r\n",
    "\r",
    "\n",
    ":",
    "Host: a",
    "Content-Length: 1",
    "\t",
    "\0",
    "\xff",
    "chunked",
    "HTTP/1.1 200 OK",
  );
  const garbage = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.array(pieces, { maxLength: 30 }).map((parts) => Buffer.from(`${parts.join("")}\r\n\r\n`, "latin1")),
  );
  fc.assert(
    fc.property(garbage, (bytes) => {
      for (const parse of [parseRequestHead, parseResponseHead]) {
        try {
          const head = parse(bytes);
          for (const field of head.headers) expect(field.value + field.name).not.toMatch(/[\r\n\0]/);
        } catch (error) {
          expect(error).toBeInstanceOf(HttpSyntaxError);
        }
      }
    }),
    { numRuns: tries(1000) },
  );
});
