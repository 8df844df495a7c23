import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { authorityText, parseTargetHost } from "./target-host.ts";

const name = (text: string) => ({ kind: "name", text });
const address = (text: string) => ({ kind: "address", text });

describe("host parsing", () => {
  test.each([
    ["example.com", name("example.com")],
    ["EXAMPLE.com.", name("example.com")],
    ["a_b.example.com", name("a_b.example.com")],
    ["localhost", name("localhost")],
    ["Bücher.de", name("xn--bcher-kva.de")],
    ["xn--bcher-kva.de", name("xn--bcher-kva.de")],
    ["a。b", name("a.b")],
    ["127.0.0.1.nip.io", name("127.0.0.1.nip.io")],
    ["2130706433", address("127.0.0.1")],
    ["0x7f000001", address("127.0.0.1")],
    ["0177.0.0.1", address("127.0.0.1")],
    ["0x7f.1", address("127.0.0.1")],
    ["127.1", address("127.0.0.1")],
    ["127.0.0.1.", address("127.0.0.1")],
    ["１２７.0.0.1", address("127.0.0.1")],
    ["0", address("0.0.0.0")],
    ["::1", address("::1")],
    ["[0:0:0:0:0:0:0:1]", address("::1")],
    ["[::ffff:127.0.0.1]", address("127.0.0.1")],
    ["::ffff:7f00:1", address("127.0.0.1")],
    ["2001:DB8::1", address("2001:db8::1")],
  ])("%s", (text, expected) => expect(parseTargetHost(text)).toEqual(expected));

  test.each([
    "",
    ".",
    "a..b",
    "-a.com",
    "a-.com",
    "256.1.1.1",
    "1.2.3.4.5",
    "08.1.1.1",
    "foo.0x1",
    "fe80::1%eth0",
    "fe80::1%25eth0",
    "[1.2.3.4]",
    "[v1.x]",
    "[::1",
    "ex%61mple.com",
    "a/b",
    "a\\b",
    "a@b",
    "a b",
    "a\0b",
    "a\r\nb",
    "a:80",
    "*.example.com",
    `${"a".repeat(64)}.com`,
    `${"a.".repeat(127)}com`,
  ])("%j is not a host", (text) => expect(parseTargetHost(text)).toBeNull());

  test("is idempotent for any text, and never returns a numeric address as a name", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webAuthority(), fc.ipV4Extended(), fc.ipV6(), fc.domain()), (text) => {
        const host = parseTargetHost(text);
        if (host === null) return;
        expect(parseTargetHost(host.text)).toEqual(host);
        if (host.kind === "name") expect(host.text).not.toMatch(/(^|\.)(\d+|0x[0-9a-f]*)$/);
      }),
      { numRuns: tries(2000) },
    );
  });
});

describe("the authority text", () => {
  test("brackets IPv6 addresses and omits the default port", () => {
    expect(authorityText({ kind: "address", text: "::1" }, 8080, 80)).toBe("[::1]:8080");
    expect(authorityText({ kind: "name", text: "example.com" }, 80, 80)).toBe("example.com");
  });
});
