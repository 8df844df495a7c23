import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { parseGitPlace } from "../../contract/session/git-address.ts";
import { checkSubmoduleOrigin } from "./submodule-origin.ts";

const check =
  (source: string, address: string, allowed: string[] = []) =>
  () =>
    checkSubmoduleOrigin({ name: "x", address }, { source, allowed });
const denied = (hint: string) => expect.objectContaining({ code: "denied", hint: expect.stringContaining(hint) });

describe("a submodule", () => {
  test.each([
    ["https://git.example/o/r.git", "https://git.example/o/s.git"],
    ["https://git.example/o/r", "https://GIT.example:443/s"],
    ["https://ann:token@git.example/r", "https://git.example/s"],
    ["git@git.example:o/r.git", "ssh://git@git.example/o/s.git"],
    ["ssh://git@git.example:22/r", "git@git.example:s"],
    ["http://[::1]:8080/r", "http://[::1]:8080/s"],
  ])("of %s may come from %s", (source, address) => {
    expect(check(source, address)).not.toThrow();
  });

  test.each([
    ["https://git.example/r", "https://evil.example/s", "--submodules-from evil.example`"],
    ["https://git.example/r", "https://git.example:8443/s", "--submodules-from git.example:8443`"],
    ["https://git.example/r", "http://git.example/s", "--submodules-from http://git.example`"],
    ["https://git.example/r", "git://git.example/s", "--submodules-from git://git.example`"],
    // The same host, but with the user's keys, which were not requested.
    ["https://git.example/r", "git@git.example:private/s", "--submodules-from ssh://git@git.example`. Your SSH keys"],
    ["git@git.example:o/r", "root@git.example:s", "--submodules-from ssh://root@git.example`"],
    ["git@git.example:o/r", "git@bastion:s", "--submodules-from ssh://git@bastion`"],
    ["https://git.example/r", "https://git.example.evil.example/s", "--submodules-from git.example.evil.example`"],
    ["https://git.example/r", "file:///home/ann/private", "--submodules-from file:///home/ann/private`"],
    ["file:///srv/r", "file:///home/ann/private", "--submodules-from file:///home/ann/private`"],
  ])("of %s is rejected from %s unless the user allows it", (source, address, hint) => {
    expect(check(source, address)).toThrow(denied(hint));
    const place = /--submodules-from (\S+)`/.exec(hint)?.[1] ?? "";
    expect(check(source, address, [place])).not.toThrow();
    expect(check(source, address, ["other.example"])).toThrow();
  });

  test.each([
    "https://evil.example?@git.example/s",
    "https://evil.example#@git.example/s",
    "https://evil.example\\@git.example/s",
    "https://git%2eexample/s",
    "https://git.example:80:90/s",
    "https:///git.example/s",
    "file://git.example/s",
    "ext::sh -c id",
  ])("%s is rejected because URL parsers may disagree on it", (address) => {
    expect(check("https://git.example/r", address)).toThrow(expect.objectContaining({ code: "unsafe" }));
  });

  test("never leads to another host according to Node's URL parser", () => {
    const piece = fc.constantFrom("git.example", "evil.example", "@", ":", "/", "?", "#", "\\", "%2f", "443", "user", ".", "//", " ", "\t");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const address = `https://${pieces.join("")}`;
        try {
          check("https://git.example/r", address)();
        } catch {
          return;
        }
        const url = new URL(address);
        expect([url.protocol, url.hostname, url.port]).toEqual(["https:", "git.example", ""]);
      }),
      { numRuns: tries(2000) },
    );
  });

  test("may come from inside an allowed folder, but not from beside it", () => {
    expect(check("file:///srv/r", "file:///srv/libs/a", ["file:///srv/libs"])).not.toThrow();
    expect(check("file:///srv/r", "file:///srv/libs-private", ["file:///srv/libs"])).toThrow();
    expect(check("file:///srv/r", "file:///srv/libs/../private", ["file:///srv/libs"])).toThrow();
  });
});

test.each(["https://git.example/o/r", "git.example/o", "ext::x", "", "a b", "ssh://"])("%j is not a place", (text) => {
  expect(() => parseGitPlace(text)).toThrow(expect.objectContaining({ code: "invalid" }));
});
