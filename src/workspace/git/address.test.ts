import { describe, expect, test } from "vitest";
import { checkAddress, cleanAddress, refuseSecretIn, withoutSecretOf } from "./address.ts";

describe("a repository address", () => {
  test.each([
    ["https://host.test/a/b.git", "https://host.test/a/b.git"],
    ["https://user:secret@host.test/a", "https://host.test/a"],
    ["https://user:p@secret@host.test/a", "https://host.test/a"],
    ["https://user:p/secret@host.test/a", "https://"],
    ["https://host.test/a?token=secret", "https://host.test/a"],
    ["ssh://git@host.test/a", "ssh://git@host.test/a"],
    ["ssh://git:secret@host.test/a", "ssh://host.test/a"],
    ["git@host.test:a/b", "git@host.test:a/b"],
    ["user:secret@host.test:a/b", "host.test:a/b"],
  ])("%s is shown as %s", (address, clean) => expect(cleanAddress(address)).toBe(clean));

  test("appears in errors without its secret", () => {
    expect(() => checkAddress("user:secret@host.test:a")).toThrow(/^"host\.test:a" is not/);
    const text = "fatal: unable to access 'https://p%40secret@host.test/a/': no";
    expect(withoutSecretOf("https://user:p%40secret@host.test/a", text)).toBe("fatal: unable to access 'https://***@host.test/a/': no");
    expect(withoutSecretOf("https://u:%zzsecret@host.test/a", "said %zzsecret")).toBe("said ***");
  });

  test("must not contain a secret in a spec or a workflow", () => {
    const source = { kind: "git" as const, submodules: false };
    expect(() => refuseSecretIn({ ...source, url: "https://user:secret@host.test/a" })).toThrow(/carries a password/);
    expect(() => refuseSecretIn({ ...source, url: "https://host.test/a" })).not.toThrow();
  });
});
