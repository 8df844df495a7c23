import { describe, expect, test } from "vitest";
import { parsePolicy } from "./network-text.ts";
import { beyondPolicy } from "./policy-within.ts";

const beyond = (policy: string, most: string) => beyondPolicy(parsePolicy([policy]), parsePolicy([most]));

describe("comparing a policy with a maximum", () => {
  test.each([
    ["none", "none"],
    ["none", "open"],
    ["open", "open"],
    ["github.com", "open"],
    ["github.com", "github.com"],
    ["api.github.com", "*.github.com"],
    ["*.eu.github.com", "*.github.com"],
    ["a.test:443", "a.test"],
    ["GET a.test/x/y", "GET|POST a.test/x"],
    ["a.test/x", "*"],
    ["registries:npm", "registries"],
    ["private db:5432", "private db:5432, open"],
  ])("%s is within %s", (policy, most) => {
    expect(beyond(policy, most)).toBeNull();
  });

  test.each([
    ["open", "none", "open"],
    ["open", "github.com", "open"],
    ["github.com", "none", "github.com"],
    ["github.com", "*.github.com", "github.com"],
    ["evilgithub.com", "*.github.com", "evilgithub.com"],
    ["*.github.com", "github.com", "*.github.com"],
    ["*", "*.github.com", "*"],
    ["a.test:8443", "a.test", "a.test:8443"],
    ["a.test", "GET a.test", "a.test"],
    ["POST a.test", "GET a.test", "POST a.test"],
    ["a.test", "a.test/x", "a.test"],
    ["a.test/xy", "a.test/x", "a.test/xy"],
    ["private db:5432", "open", "private db:5432"],
    ["private db:5432", "db:5432", "private db:5432"],
    ["registries:npm", "open", "registries:npm"],
    ["registries", "registries:npm", "registries:pypi"],
    ["a.test, b.test", "a.test", "b.test"],
  ])("%s exceeds %s", (policy, most, what) => {
    expect(beyond(policy, most)).toBe(what);
  });
});
