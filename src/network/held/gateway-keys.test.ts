import { expect, test } from "vitest";
import { CaissonError } from "../../contract/error.ts";
import type { GatewayWire } from "../../contract/network.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import type { NetworkHost } from "../network-host.ts";
import { checkGatewayKeys } from "./gateway-keys.ts";
import { networked } from "./networked-runtime.ts";

const host = (variables: Record<string, string>, gateway: Partial<Record<GatewayWire, string>> = {}) => ({
  variable: (name: string) => variables[name],
  settings: { gateway } as NetworkHost["settings"],
});

test("a gateway without a key is refused, naming the variable", () => {
  const refused = () => checkGatewayKeys({ wires: ["anthropic", "openai"] }, host({ ANTHROPIC_API_KEY: "k" }));
  expect(refused).toThrow(CaissonError);
  expect(refused).toThrow("the gateway to openai has no key");
  try {
    refused();
  } catch (error) {
    expect(error).toMatchObject({ code: "unauthenticated", hint: expect.stringContaining("OPENAI_API_KEY") });
  }
});

test("a server of one's own needs none, and no gateway none either", () => {
  checkGatewayKeys({ wires: ["openai"] }, host({}, { openai: "http://127.0.0.1:1/v1" }));
  checkGatewayKeys({ wires: ["openai"] }, host({ OPENAI_API_KEY: "k" }));
  checkGatewayKeys(undefined, host({}));
});

test("nothing is made before it is refused", async () => {
  const inner = createFakeRuntime();
  let made = 0;
  const create: typeof inner.create = (...asked) => {
    made += 1;
    return inner.create(...asked);
  };
  const runtime = networked({ ...inner, create }, { ...host({}), stateDir: "/nowhere", redactors: new Map() } as never);
  await expect(runtime.create({ gateway: { wires: ["anthropic"] } } as never)).rejects.toMatchObject({ code: "unauthenticated" });
  expect(made).toBe(0);
});
