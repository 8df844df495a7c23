import { describe, expect, test } from "vitest";
import { NetworkPolicy } from "../../contract/network/network.ts";
import { insideEnv } from "./inside-env.ts";
import { insideNames } from "./inside-paths.ts";

const none = NetworkPolicy.parse({ mode: "none" });
const allow = NetworkPolicy.parse({ mode: "allow", rules: [{ host: "example.com" }] });
const nothing = { placeholders: {}, secrets: {}, gateway: undefined, mirrorEnv: {} };

describe("insideEnv", () => {
  test("is empty without a network", () => {
    expect(insideEnv({ ...nothing, policy: none, mirrorEnv: { PIP_INDEX_URL: "http://127.0.0.1:19082/pypi" } })).toEqual({});
  });

  test("names the proxy in both spellings, and excludes loopback", () => {
    const env = insideEnv({ ...nothing, policy: allow });
    for (const name of ["http_proxy", "https_proxy", "all_proxy"]) {
      expect(env[name]).toBe("http://127.0.0.1:19080");
      expect(env[name.toUpperCase()]).toBe("http://127.0.0.1:19080");
    }
    expect(env.NO_PROXY).toBe("localhost,127.0.0.1,::1");
    expect(env.no_proxy).toBe(env.NO_PROXY);
  });

  test("names only files that the host writes", () => {
    const env = insideEnv({ ...nothing, policy: allow });
    const named = Object.values(env).flatMap((value) => /\/run\/caisson\/(.*)/.exec(value)?.[1] ?? []);
    expect(named.length).toBeGreaterThan(10);
    expect(Object.values(insideNames)).toEqual(expect.arrayContaining(named));
  });

  test("has the gateway's wires with a placeholder key, even without a network", () => {
    const wires = (list: ("anthropic" | "openai")[]) => insideEnv({ ...nothing, policy: none, gateway: { wires: list } });
    expect(wires(["anthropic"])).toEqual({ ANTHROPIC_BASE_URL: "http://127.0.0.1:19081/anthropic", ANTHROPIC_API_KEY: "caisson-gateway" });
    expect(wires(["openai"])).toEqual({
      OPENAI_BASE_URL: "http://127.0.0.1:19081/openai/v1",
      OPENAI_API_KEY: "caisson-gateway",
      CODEX_API_KEY: "caisson-gateway",
    });
    expect(Object.keys(wires(["anthropic", "openai"]))).toHaveLength(5);
  });

  test("has the placeholders and the mirror's variables", () => {
    const mirrorEnv = { PIP_INDEX_URL: "http://127.0.0.1:19082/pypi" };
    const env = insideEnv({ ...nothing, policy: allow, placeholders: { API_TOKEN: "tok_placeholder" }, mirrorEnv });
    expect(env).toMatchObject({ API_TOKEN: "tok_placeholder", ...mirrorEnv });
  });
});
