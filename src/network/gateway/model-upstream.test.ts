import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { openGatewayRig } from "../../../test/support/gateway-rig.ts";
import { anthropicMessage } from "../../../test/support/model-upstream.ts";
import { createAuthority } from "../authority/authority.ts";
import { upstreamUrl } from "./model-upstream.ts";

const ask = { model: "priced-x", max_tokens: 10, messages: [{ role: "user", content: "Say it." }] };

/** Serves over TLS with a certificate for this name from the test's own authority. */
async function openSecure(name: string) {
  const authority = createAuthority();
  const keys: unknown[] = [];
  const context = authority.contextFor(name);
  const server = createServer({ SNICallback: (_asked, done) => done(null, context) }, (request, response) => {
    keys.push(request.headers["x-api-key"]);
    request.resume();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(anthropicMessage("ok", { input: 1, output: 1 })));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    authority,
    keys,
    baseUrl: `https://localhost:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.each([
  ["is trusted", "localhost", true, 200],
  ["is not trusted", "localhost", false, 502],
  ["has another name", "example.com", true, 502],
])("an upstream over TLS whose certificate %s", async (_name, host, known, status) => {
  await using secure = await openSecure(host);
  const upstreams = { anthropic: { baseUrl: secure.baseUrl, key: async () => "sk-0123456789" } };
  await using rig = await openGatewayRig({}, { upstreams, ...(known ? { upstreamCa: [secure.authority.certificatePem] } : {}) });
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  try {
    expect((await rig.post("/anthropic/v1/messages", ask)).status).toBe(status);
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  }
  expect(secure.keys).toEqual(status === 200 ? ["sk-0123456789"] : []);
});

test.each([
  ["anthropic", undefined, "https://api.anthropic.com/v1/messages?beta=true"],
  ["anthropic", "https://proxy.example/anthropic/", "https://proxy.example/anthropic/v1/messages?beta=true"],
  ["anthropic", "https://proxy.example/v1", "https://proxy.example/v1/messages?beta=true"],
  ["openai", undefined, "https://api.openai.com/v1/messages?beta=true"],
  ["openai", "http://localhost:11434/v1/", "http://localhost:11434/v1/messages?beta=true"],
  ["openai", "https://other.example/v1beta/openai", "https://other.example/v1beta/openai/messages?beta=true"],
] as const)("%s at %s", (wire, baseUrl, url) => {
  expect(upstreamUrl({ wire, baseUrl, path: "/messages", query: "?beta=true" }).href).toBe(url);
});
