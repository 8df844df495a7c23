import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { STREAM_PROTOCOL, streamPaths } from "../contract/api/stream-paths.ts";
import type { Scope } from "../contract/token/token-verbs.ts";
import { createLocalTokens } from "../station/tokens/local-tokens.ts";
import type { Route } from "../verbs/route.ts";
import type { RouteName } from "../verbs/routes.ts";
import { routes } from "../verbs/routes.ts";
import { pathOf } from "../verbs/verb-facts.ts";
import { rawSocket } from "./streams/testing-streams.ts";

const { server, token, ask, post, base, defects, insideToken } = useServer();
const all = Object.keys(routes) as RouteName[];
/** Fewer than the invalid tokens after which the station rejects an address. */
const TRIES_PER_ADDRESS = 15;
const scopes: readonly Scope[] = ["read", "run", "admin"];
const ids: Readonly<Record<string, string>> = {
  sandbox: "sb_aaaaaaaaaaaa",
  snapshot: "sn_aaaaaaaaaaaa",
  run: "run_aaaaaaaaaaaa",
  session: "none",
  token: "tok_aaaaaaaaaaaa",
  upload: "up_aaaaaaaaaaaa",
  process: "none",
  image: "none",
  secret: "NONE",
  incident: "inc_aaaaaaaaaaaa",
  preview: "pv_aaaaaaaaaaaa",
  artifact: "none",
  thing: "sb_aaaaaaaaaaaa",
  port: "80",
};
/** These routes need no body and would do a lot of work. An unknown parameter makes them fail early. */
const busy: readonly RouteName[] = ["machine.attack", "machine.conformance", "sandboxes.sweep"];

/** Returns a call that reaches its route and finds nothing there, or too little input to have an effect. */
function callOf(name: RouteName): { path: string; method: string } {
  const { method, path } = pathOf(name);
  return { method, path: busy.includes(name) ? `${filled(path)}?nothing=1` : filled(path) };
}

const filled = (path: string) => path.replaceAll(/\{(\w+)\}/g, (_, each: string) => ids[each] ?? `no-id-for-${each}`);

const upgrade = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  "sec-websocket-protocol": STREAM_PROTOCOL,
};
const socketPaths = Object.values(streamPaths).map(filled);

interface WayIn {
  method: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
}

/** Every authenticated entry to the station: its routes, its WebSockets, MCP and metrics. */
const waysIn: readonly WayIn[] = [
  ...all.map(callOf),
  ...socketPaths.map((path) => ({ method: "GET", path, headers: upgrade })),
  { method: "POST", path: "/mcp" },
  { method: "GET", path: "/metrics" },
];

/** Sends a request from a separate address, so that the limit on invalid tokens does not apply. */
async function statusFrom(localAddress: string, { method, path, headers }: WayIn, as: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const requestHeaders = { ...headers, authorization: `Bearer ${as}` };
  request(`${server().status.url}${path}`, { method, localAddress, agent: false, headers: requestHeaders })
    .on("error", reject)
    .on("response", (response) => resolve(response.resume().statusCode))
    .on("upgrade", (response, socket) => {
      socket.destroy();
      resolve(response.statusCode);
    })
    .end();
  return await promise;
}

async function statusOf(name: RouteName, as: string | undefined): Promise<number> {
  const { path, method } = callOf(name);
  const response = await ask(path, { method, ...(as !== undefined && { as }) });
  await response.body?.cancel();
  return response.status;
}

describe("every route", () => {
  test("rejects missing, wrong, expired and revoked tokens", async () => {
    const yesterday = createLocalTokens({ stateDir: join(base(), "state"), now: () => Date.now() - 86_400_000 });
    const { token: expired } = await yesterday.create({ name: "expired", scope: "admin", expiresInMs: 60_000 });
    const { token: revoked, id } = await yesterday.create({ name: "revoked", scope: "admin" });
    await yesterday.revoke(id);
    for (const name of all) {
      const { path, method } = callOf(name);
      const without = await fetch(`${server().status.url}${path}`, { method });
      expect([name, without.status]).toEqual([name, 401]);
      expect(without.headers.get("content-type")).toBe("application/problem+json");
      expect(await without.json()).toMatchObject({ code: "unauthenticated", status: 401 });
    }
    const guessed = `${(await token("admin")).replace(/_[^_]*$/, "")}_${"a".repeat(52)}`;
    let tried = 0;
    for (const [kind, wrong] of Object.entries({ expired, revoked, guessed, nonsense: "nonsense" })) {
      for (const way of waysIn) {
        const status = await statusFrom(`127.1.1.${1 + Math.floor(tried++ / TRIES_PER_ADDRESS)}`, way, wrong);
        expect([kind, way.method, way.path, status]).toEqual([kind, way.method, way.path, 401]);
      }
    }
    expect(defects).toEqual([]);
  });

  // Shutdown comes last, since it ends the station.
  const ordered = [...all.filter((name) => name !== "station.shutdown"), "station.shutdown" as const];
  test.each(scopes)("requires its scope: with a token for %s", async (scope) => {
    const as = await token(scope);
    for (const name of ordered) {
      const route: Route = routes[name];
      const may = route.scope !== "sandbox" && route.scope !== "code" && scopes.indexOf(scope) >= scopes.indexOf(route.scope);
      const status = await statusOf(name, as);
      if (route.scope === "code") {
        expect([name, status], "is not a code").toEqual([name, 401]);
        continue;
      }
      if (may) expect([name, status], "is let in").not.toEqual([name, 403]);
      else expect([name, status]).toEqual([name, 403]);
      expect([name, status]).not.toEqual([name, 401]);
    }
    expect(defects).toEqual([]);
  });

  test("rejects a sandbox token, except for the calls from inside, which require one", async () => {
    let sandbox = "";
    for (const [at, name] of all.entries()) {
      // A new sandbox avoids the rate limit.
      if (at % 40 === 0) sandbox = ((await (await post("/v1/sandboxes")).json()) as { id: string }).id;
      const status = await statusOf(name, insideToken(sandbox));
      if (routes[name].scope === "code") expect([name, status]).toEqual([name, 401]);
      else if (routes[name].scope === "sandbox") expect([401, 403, 404], name).not.toContain(status);
      else expect([name, status]).toEqual([name, 403]);
      if (routes[name].scope === "sandbox") expect([name, await statusOf(name, undefined)]).toEqual([name, 403]);
    }
    expect(defects).toEqual([]);
  });

  test("rejects a sandbox token on WebSockets, MCP and metrics", async () => {
    const { id } = (await (await post("/v1/sandboxes")).json()) as { id: string };
    const as = insideToken(id);
    for (const path of socketPaths) expect([path, await rawSocket(server(), path, { as }).closed]).toEqual([path, 4403]);
    for (const path of ["/mcp", "/metrics"]) {
      const response = await ask(path, { method: path === "/mcp" ? "POST" : "GET", as });
      expect([path, response.status, await response.json()]).toMatchObject([path, 403, { code: "denied" }]);
    }
    expect(defects).toEqual([]);
  });

  test("accepts any process that can open the socket", async () => {
    for (const name of ordered.filter((each) => routes[each].scope !== "sandbox" && routes[each].scope !== "code")) {
      expect([401, 403], name).not.toContain(await statusOf(name, undefined));
    }
    expect(defects).toEqual([]);
  });
});

describe("a body that names something on the station's machine", () => {
  const bodies: readonly (readonly [string, string, object])[] = [
    ["a folder", "/v1/sandboxes", { spec: { workspace: { kind: "folder", path: "/tmp" } } }],
    ["a further folder", "/v1/sandboxes", { spec: { mounts: [{ path: "/etc", target: "/mnt" }] } }],
    ["an image's folder", "/v1/sandboxes", { spec: { template: { kind: "image", reference: "/" } } }],
    ["the runtime host", "/v1/sandboxes", { runtime: "host" }],
    ["a secret", "/v1/sandboxes", { spec: { secrets: { X: { from: { command: ["id"] }, hosts: ["e.test"] } } } }],
    ["private addresses", "/v1/sandboxes", { spec: { network: { mode: "allow", rules: [{ host: "host.caisson", private: true }] } } }],
    ["a folder to work on", "/v1/runs", { task: "x", source: { kind: "folder", path: "/tmp" } }],
    ["an agent's file", "/v1/runs", { task: "x", agent: "./agents/x.prompt" }],
    ["an agent's definition", "/v1/runs", { task: "x", agent: { name: "x", system: "x" } }],
    ["trust", "/v1/runs", { task: "x", trustAgentFile: true }],
    ["a recording", "/v1/runs", { task: "x", replay: "/etc/passwd" }],
    ["a scripted model", "/v1/runs", { task: "x", model: "scripted:/etc/passwd" }],
    ["a repository on the machine", "/v1/runs", { task: "x", source: { kind: "git", url: "/srv/repository" } }],
    ["a key's file", "/v1/runs", { task: "x", source: { kind: "git", url: "https://e.test/r", keyPath: "/root/.ssh/id" } }],
    ["a scripted model for the next turn", "/v1/runs/none/continue", { text: "x", model: "scripted:/etc/passwd" }],
    ["a secret of a run", "/v1/runs", { task: "x", settings: { secrets: { X: { hosts: ["e.test"] } } } }],
  ];

  test.each(bodies)("is denied to a token with the scope run: %s", async (_what, path, body) => {
    const response = await post(path, body, { as: await token("run") });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      code: "denied",
      detail: expect.stringContaining("may not access the station's machine"),
    });
  });

  test("is accepted from a token with the scope admin", async () => {
    const workspace = { kind: "folder", path: join(base(), "work") };
    const response = await post("/v1/sandboxes", { spec: { workspace } }, { as: await token("admin") });
    expect(response.status).toBe(201);
  });
});
