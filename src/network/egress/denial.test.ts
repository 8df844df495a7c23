import { describe, expect, test } from "vitest";
import { NetworkPolicy } from "../../contract/network/network.ts";
import { DenialReason, FailureReason, NetworkDenied, NetworkFailed } from "../../contract/network/network-event.ts";
import { type Attempt, denialAnswer, makeDenial, type Refusal } from "./denial.ts";
import { createDenialLog } from "./denial-log.ts";

const attempt: Attempt = { host: "evil.test", port: 443, via: "http", method: "GET", path: "/a?token=hidden" };
const allow = (...rules: object[]) => NetworkPolicy.parse({ mode: "allow", rules });
const deny = (refusal: Refusal, policy: NetworkPolicy = allow({ host: "a.test" }), more: Partial<Attempt> = {}) =>
  makeDenial({ attempt: { ...attempt, ...more }, refusal, policy, howToAsk: (host, port) => `ask for ${host} ${port}` });

describe("a denial", () => {
  test("explains itself to a person", () => {
    expect(deny({ reason: "host_not_allowed" }).text).toBe(
      [
        "Denied by Caisson: GET evil.test:443/a",
        "Why: evil.test is not on this sandbox's list of allowed hosts (host_not_allowed)",
        "Allowed here: a.test",
        "To get access: ask for evil.test 443",
        "",
      ].join("\n"),
    );
  });

  test("has a text, a status and a valid event for every reason", () => {
    for (const reason of [...DenialReason.options, ...FailureReason.options]) {
      const denial = deny({ reason });
      const answer = denialAnswer(denial);
      expect([400, 403, 429, 502]).toContain(answer.status);
      const failed = FailureReason.safeParse(reason).success;
      expect(answer.reason).toMatch(/^[A-Z][A-Za-z ]+: [\x20-\x7e]+$/);
      expect(answer.reason?.startsWith("Denied by Caisson: ")).toBe(!failed);
      expect(answer.headers?.[0]).toEqual([failed ? "x-caisson-failed" : "x-caisson-denied", reason]);
      createDenialLog({
        windowMs: 1000,
        differentMax: 10,
        emit: (event) =>
          expect(
            (failed ? NetworkFailed : NetworkDenied).safeParse({
              ...event,
              version: 1,
              at: new Date().toISOString(),
              data: { ...event.data, sandbox: "sb_aaaaaaaaaaaa" },
            }),
          ).toMatchObject({ success: true }),
      }).add(denial);
    }
  });

  test("lists at most twenty rules, and keeps headers printable", () => {
    const many = allow(...Array.from({ length: 1000 }, (_, index) => ({ host: `h${index}.test`, paths: [`/${"é\r\n".repeat(100)}`] })));
    const denial = deny({ reason: "path_not_allowed" }, many, { host: "h3.test", path: `/${"x".repeat(5000)}` });
    expect(denial.text.length).toBeLessThanOrEqual(4096);
    expect(denial.text).not.toContain("h20.test");
    for (const [, value] of denialAnswer(denial).headers ?? []) expect(value).toMatch(/^[\x20-\x7e]{1,300}$/);
  });

  test("offers no way to ask for a host that no policy can allow", () => {
    expect(deny({ reason: "private_address" }).text).toContain("ask for");
    expect(deny({ reason: "private_address", final: true }).text).not.toContain("ask for");
    expect(deny({ reason: "bad_request" }, undefined, { host: "" }).text).not.toContain("ask for");
  });

  test("names the policy mode if no rule applies", () => {
    expect(deny({ reason: "no_network" }, { mode: "none" }).text).toContain("Allowed here: nothing");
    expect(deny({ reason: "host_not_allowed" }, allow()).rule).toBe("none (allow)");
    const open = NetworkPolicy.parse({ mode: "open", registries: ["npm"] });
    expect(deny({ reason: "private_address" }, open).text).toContain("Allowed here: every public address; package registries (npm)");
  });
});
