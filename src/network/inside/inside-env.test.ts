import { describe, expect, test } from "vitest";
import { NetworkPolicy } from "../../contract/network.ts";
import { insideEnv } from "./inside-env.ts";
import { insideNames } from "./inside-paths.ts";

const none = NetworkPolicy.parse({ mode: "none" });
const allow = NetworkPolicy.parse({ mode: "allow", rules: [{ host: "example.com" }] });
const nothing = { placeholders: {}, secrets: {}, gateway: undefined, mirrorEnv: {} };

describe("insideEnv", () => {
  test("without a network there is nothing", () => {
    expect(insideEnv({ ...nothing, policy: none, mirrorEnv: { PIP_INDEX_URL: "http://127.0.0.1:19082/pypi" } })).toEqual({});
  });

  test("names the proxy in both spellings, and leaves loopback out", () => {
    const env = insideEnv({ ...nothing, policy: allow });
    for (const name of ["http_proxy", "https_proxy", "all_proxy"]) {
      expect(env[name]).toBe("http://127.0.0.1:19080");
      expect(env[name.toUpperCase()]).toBe("http://127.0.0.1:19080");
    }
    expect(env.NO_PROXY).toBe("localhost,127.0.0.1,::1");
    expect(env.no_proxy).toBe(env.NO_PROXY);
  });

  test("every path is of a file that is put there", () => {
    const env = insideEnv({ ...nothing, policy: allow });
    const named = Object.values(env).flatMap((value) => /\/run\/caisson\/(.*)/.exec(value)?.[1] ?? []);
    expect(named.length).toBeGreaterThan(10);
    expect(Object.values(insideNames)).toEqual(expect.arrayContaining(named));
  });

  test("the gateway's wires, each with a key that is none, also without a network", () => {
    const wires = (list: ("anthropic" | "openai")[]) => insideEnv({ ...nothing, policy: none, gateway: { wires: list } });
    expect(wires(["anthropic"])).toEqual({ ANTHROPIC_BASE_URL: "http://127.0.0.1:19081/anthropic", ANTHROPIC_API_KEY: "caisson-gateway" });
    expect(wires(["openai"])).toEqual({
      OPENAI_BASE_URL: "http://127.0.0.1:19081/openai/v1",
      OPENAI_API_KEY: "caisson-gateway",
      CODEX_API_KEY: "caisson-gateway",
    });
    expect(Object.keys(wires(["anthropic", "openai"]))).toHaveLength(5);
  });

  test("placeholders and the mirrors' variables are there", () => {
    const mirrorEnv = { PIP_INDEX_URL: "http://127.0.0.1:19082/pypi" };
    const env = insideEnv({ ...nothing, policy: allow, placeholders: { API_TOKEN: "tok_placeholder" }, mirrorEnv });
    expect(env).toMatchObject({ API_TOKEN: "tok_placeholder", ...mirrorEnv });
  });
});
