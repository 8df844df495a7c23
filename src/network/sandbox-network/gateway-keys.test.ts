import { expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayWire } from "../../contract/network/network.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import type { NetworkHost } from "../network-host.ts";
import { checkGatewayKeys } from "./gateway-keys.ts";
import { addNetworking } from "./networked-runtime.ts";

const host = (variables: Record<string, string>, gateway: Partial<Record<GatewayWire, string>> = {}) => ({
  variable: (name: string) => variables[name],
  settings: { gateway } as NetworkHost["settings"],
});

test("refuses a gateway without a key, and names the variable", () => {
  const refused = () => checkGatewayKeys({ wires: ["anthropic", "openai"] }, host({ ANTHROPIC_API_KEY: "k" }));
  expect(refused).toThrow(CaissonError);
  expect(refused).toThrow("the gateway to openai has no key");
  try {
    refused();
  } catch (error) {
    expect(error).toMatchObject({ code: "unauthenticated", hint: expect.stringContaining("OPENAI_API_KEY") });
  }
});

test("needs no key for a self-hosted server, nor without a gateway", () => {
  checkGatewayKeys({ wires: ["openai"] }, host({}, { openai: "http://127.0.0.1:1/v1" }));
  checkGatewayKeys({ wires: ["openai"] }, host({ OPENAI_API_KEY: "k" }));
  checkGatewayKeys(undefined, host({}));
});

test("refuses before anything is created", async () => {
  const inner = createFakeRuntime();
  let creations = 0;
  const create: typeof inner.create = (...parameters) => {
    creations += 1;
    return inner.create(...parameters);
  };
  const runtime = addNetworking({ ...inner, create }, { ...host({}), stateDir: "/nowhere", redactors: new Map() } as never);
  await expect(runtime.create({ gateway: { wires: ["anthropic"] } } as never)).rejects.toMatchObject({ code: "unauthenticated" });
  expect(creations).toBe(0);
});
