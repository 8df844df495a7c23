import { describe, expect, test } from "vitest";
import { parsePolicy, parseRule, parseSecret, showPolicy, showRule } from "./network-text.ts";

const anyPort = { ports: [80, 443], private: false };

describe("rules in text form", () => {
  test.each([
    ["github.com", { host: "github.com", ...anyPort }],
    ["*.Example.ORG", { host: "*.example.org", ...anyPort }],
    ["example.com:8443", { host: "example.com", ports: [8443], private: false }],
    ["example.com:80+8080", { host: "example.com", ports: [80, 8080], private: false }],
    ["https://example.com/api", { host: "example.com", ports: [443], paths: ["/api"], private: false }],
    ["GET|head api.github.com/repos", { host: "api.github.com", ...anyPort, methods: ["GET", "HEAD"], paths: ["/repos"] }],
    ["private 10.0.0.5:5432", { host: "10.0.0.5", ports: [5432], private: true }],
    ["db:80+443", { host: "db", ...anyPort }],
    ["private db", { host: "db", ports: [80, 443], private: true }],
    ["[2606:2800::1]:443", { host: "2606:2800::1", ports: [443], private: false }],
  ])("%s", (text, rule) => {
    expect(parseRule(text)).toEqual(rule);
    expect(parseRule(showRule(parseRule(text)))).toEqual(rule);
  });

  test.each([
    "",
    "a b c",
    "exa mple.com",
    "example.com:0",
    "example.com:70000",
    "*.*.com",
    "-x.com",
    "ex_*.com",
    "GET",
    "http://",
    "example.com:x",
    "registry",
    "opne",
    "db",
  ])("%j is rejected with a hint", (text) => {
    expect(() => parseRule(text)).toThrow(expect.objectContaining({ code: "invalid", hint: expect.stringMatching(/host/i) }));
  });
});

describe("policies in text form", () => {
  test("combine several words into one policy", () => {
    expect(parsePolicy([])).toEqual({ mode: "none" });
    expect(parsePolicy(["open"])).toMatchObject({ mode: "open", rules: [], registries: [] });
    expect(parsePolicy(["registries:npm+pypi", "github.com,api.github.com"])).toMatchObject({
      mode: "allow",
      registries: ["npm", "pypi"],
      rules: [{ host: "github.com" }, { host: "api.github.com" }],
      transparent: false,
    });
    expect(parsePolicy(["registries", "transparent"])).toMatchObject({
      registries: ["npm", "pypi", "debian", "crates", "go"],
      transparent: true,
    });
  });
  test("reject contradictory words", () => {
    for (const words of [["none", "github.com"], ["none", "open"], ["registries:cpan"]]) expect(() => parsePolicy(words)).toThrow();
  });
  test.each([["none"], ["open"], ["registries"], ["registries:npm, github.com, GET x.org/a"], ["open, private 10.0.0.1"]])(
    "%s is shown as it was written",
    (text) => {
      expect(showPolicy(parsePolicy([text]))).toBe(text);
    },
  );
});

describe("secrets in text form", () => {
  test("parse settings", () => {
    expect(parseSecret("GITHUB_TOKEN@api.github.com,github.com;from=env:GH;methods=GET|POST;git")).toEqual({
      name: "GITHUB_TOKEN",
      config: {
        from: { env: "GH" },
        hosts: ["api.github.com", "github.com"],
        ports: [443],
        methods: ["GET", "POST"],
        git: { username: "x-access-token" },
      },
    });
    expect(parseSecret("K@h.org;from=file:/run/k;header=X-Api-Key").config).toMatchObject({
      from: { file: "/run/k" },
      header: "x-api-key",
    });
    expect(parseSecret("K@h.org;from=command:pass show k").config.from).toEqual({ command: ["pass", "show", "k"] });
    expect(parseSecret("K@h.org").config.from).toBe("env");
  });
  test.each(["K", "@h.org", "K@", "K@h.org;nonsense", "K@h.org;from=cloud:x", "K@not a host"])("%s is rejected", (text) => {
    expect(() => parseSecret(text)).toThrow(expect.objectContaining({ code: "invalid", hint: expect.stringContaining("NAME@HOST") }));
  });
});
