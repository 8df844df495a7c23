import { describe, expect, test } from "vitest";
import { cpuMs } from "../../../test/support/cpu-time.ts";
import { NetworkPolicy } from "../../contract/network/network.ts";
import { decideHost, decideRequest, mustInspect, reaching, ruleOf } from "./decide-egress.ts";

const allow = (...rules: object[]) => NetworkPolicy.parse({ mode: "allow", rules });
const open = (...rules: object[]) => NetworkPolicy.parse({ mode: "open", rules });
const host = (policy: NetworkPolicy, text: string, port = 443) => {
  const decision = decideHost(policy, { host: text, port });
  return decision.allowed ? "allowed" : decision.reason;
};
const request = (policy: NetworkPolicy, method: string, path: string, to = "example.com") => {
  const decision = decideRequest(policy, { host: to, port: 443, method, path });
  return decision.allowed ? "allowed" : decision.reason;
};

describe("the decision on a host", () => {
  test("refuses every host without a network", () => {
    expect(host({ mode: "none" }, "example.com")).toBe("no_network");
  });

  test("N10: refuses every host with an empty allow-list", () => {
    for (const text of ["example.com", "localhost", "1.1.1.1", "::1"]) expect(host(allow(), text)).toBe("host_not_allowed");
  });

  test("allows any host and port in open mode", () => {
    expect(host(open(), "example.com", 25)).toBe("allowed");
    expect(host(open(), "a b", 25)).toBe("bad_request");
  });

  test.each([
    ["example.com", "example.com", "allowed"],
    ["example.com", "EXAMPLE.COM.", "allowed"],
    ["example.com", "a.example.com", "host_not_allowed"],
    ["example.com", "notexample.com", "host_not_allowed"],
    ["example.com", "example.com.evil.net", "host_not_allowed"],
    ["*.example.com", "a.example.com", "allowed"],
    ["*.example.com", "a.b.example.com", "allowed"],
    ["*.example.com", "example.com", "host_not_allowed"],
    ["*.example.com", "notexample.com", "host_not_allowed"],
    ["*", "anything.net", "allowed"],
    ["*", "1.2.3.4", "allowed"],
    ["1.2.3.4", "1.2.3.4", "allowed"],
    ["1.2.3.4", "0x1020304", "allowed"],
    ["1.2.3.4", "::ffff:1.2.3.4", "allowed"],
    ["*.3.4", "1.2.3.4", "host_not_allowed"],
    ["2001:db8::1", "[2001:0db8:0::1]", "allowed"],
    ["xn--bcher-kva.de", "bücher.de", "allowed"],
  ])("with a rule for %s, %s is %s", (pattern, target, expected) => expect(host(allow({ host: pattern }), target)).toBe(expected));

  test("refuses a port that no rule allows", () => {
    expect(host(allow({ host: "example.com" }), "example.com", 22)).toBe("port_not_allowed");
    expect(host(allow({ host: "example.com" }, { host: "*.com", ports: [22] }), "example.com", 22)).toBe("allowed");
  });
});

describe("the decision on a request", () => {
  const policy = allow({ host: "example.com", methods: ["GET", "HEAD"], paths: ["/api", "/v1/"] });

  test.each([
    ["GET", "/api", "allowed"],
    ["GET", "/api/", "allowed"],
    ["GET", "/api/x?y=/../z", "allowed"],
    ["HEAD", "/v1", "allowed"],
    ["GET", "/v1/x;y=1", "allowed"],
    ["GET", "/api/%20x", "allowed"],
    ["POST", "/api", "method_not_allowed"],
    ["get", "/api", "method_not_allowed"],
    ["GET", "/", "path_not_allowed"],
    ["GET", "/apix", "path_not_allowed"],
    ["GET", "/API", "path_not_allowed"],
    ["GET", "*", "path_not_allowed"],
    ["GET", "/api/../admin", "path_not_allowed"],
    ["GET", "/api/..", "path_not_allowed"],
    ["GET", "/api/./x", "path_not_allowed"],
    ["GET", "/api//x", "path_not_allowed"],
    ["GET", "//api", "path_not_allowed"],
    ["GET", "/api/%2e%2E/admin", "path_not_allowed"],
    ["GET", "/api/.%2e/admin", "path_not_allowed"],
    ["GET", "/api%2f..%2fadmin", "path_not_allowed"],
    ["GET", "/api/%252e%252e/admin", "path_not_allowed"],
    ["GET", "/api\\..\\admin", "path_not_allowed"],
    ["GET", "/api/..;/admin", "path_not_allowed"],
    ["GET", "/api/%5c..", "path_not_allowed"],
    ["GET", "/api/%00", "path_not_allowed"],
    ["GET", "/api/%zz", "path_not_allowed"],
    ["GET", "/api#/../x", "path_not_allowed"],
  ])("%s %s", (method, path, expected) => expect(request(policy, method, path)).toBe(expected));

  test("does not combine the method of one rule with the path of another", () => {
    const two = allow({ host: "example.com", methods: ["POST"], paths: ["/upload"] }, { host: "example.com", methods: ["GET"] });
    expect(request(two, "POST", "/upload")).toBe("allowed");
    expect(request(two, "POST", "/other")).toBe("path_not_allowed");
    expect(request(two, "GET", "/../x")).toBe("allowed");
  });
});

describe("request inspection", () => {
  const inspected = (policy: NetworkPolicy, reach: "public" | "private" = "public") => {
    const decision = decideHost(policy, { host: "a.example.com", port: 443 });
    const grant = decision.allowed ? reaching(decision.grant, reach) : null;
    return grant === null ? "refused" : mustInspect(grant);
  };

  test("is needed only if every matching rule has methods or paths", () => {
    expect(inspected(allow({ host: "a.example.com" }))).toBe(false);
    expect(inspected(allow({ host: "a.example.com", methods: ["GET"] }))).toBe(true);
    expect(inspected(allow({ host: "a.example.com", paths: ["/x"] }, { host: "*.example.com", methods: ["GET"] }))).toBe(true);
    expect(inspected(allow({ host: "a.example.com", paths: ["/x"] }, { host: "*.example.com" }))).toBe(false);
    expect(inspected(open({ host: "a.example.com", paths: ["/x"] }))).toBe(false);
  });

  test("follows only `private` rules for a private address", () => {
    expect(inspected(allow({ host: "a.example.com" }), "private")).toBe("refused");
    expect(inspected(open(), "private")).toBe("refused");
    expect(inspected(allow({ host: "a.example.com", private: true }), "private")).toBe(false);
    expect(inspected(open({ host: "a.example.com", private: true }), "private")).toBe(false);
    expect(inspected(allow({ host: "a.example.com", private: true, methods: ["GET"] }, { host: "*.example.com" }), "private")).toBe(true);
  });

  test("refuses unreachable addresses even with `private`", () => {
    const decision = decideHost(allow({ host: "*", private: true }), { host: "169.254.169.254", port: 80 });
    expect(decision.allowed && reaching(decision.grant, "never")).toBeNull();
  });
});

test("writes a rule as a person would", () => {
  const named = (rule: object) => {
    const decision = decideHost(allow(rule), { host: "a.example.com", port: 443 });
    return decision.allowed && ruleOf(decision.grant);
  };
  expect(named({ host: "*.example.com" })).toBe("*.example.com");
  expect(named({ host: "a.example.com", ports: [443], methods: ["GET", "HEAD"], paths: ["/x"] })).toBe("GET,HEAD a.example.com:443 /x");
  expect(named({ host: "*", paths: [`/${"x".repeat(400)}`] })).toHaveLength(300);
});

test("a thousand rules cost no more than a few", () => {
  const rules = Array.from({ length: 1000 }, (_, index) => ({
    host: index % 2 ? `h${index}.example.com` : `*.h${index}.example.com`,
    paths: ["/x"],
  }));
  const policy = allow(...rules);
  host(policy, "warm.example.com");
  const startMs = cpuMs();
  for (let index = 0; index < 20_000; index++) decideRequest(policy, { host: "h999.example.com", port: 443, method: "GET", path: "/x/y" });
  // Checking every rule would take several seconds.
  expect(cpuMs() - startMs).toBeLessThan(1000);
});
