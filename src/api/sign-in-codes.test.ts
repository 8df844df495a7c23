import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import type { CodeView, NewCode } from "../contract/token/sign-in-code.ts";
import type { NewToken, TokenView } from "../contract/token/token-verbs.ts";
import type { Caller } from "./call.ts";
import { createSignInCodes } from "./sign-in-codes.ts";

const { server, token, ask, post, base, station, start, defects } = useServer();
const exchange = (code: string, headers: Readonly<Record<string, string>> = {}) =>
  ask("/v1/codes/exchange", { method: "POST", as: code, headers });
const newCode = async (body: object = {}, as?: string): Promise<NewCode> =>
  (await (await post("/v1/codes", body, as === undefined ? {} : { as })).json()) as NewCode;
const names = async () => (await station().tokens.list()).map(({ name }) => name);

describe("a sign-in code", () => {
  test("is exchanged once for a token, which does not exist before", async () => {
    const { code, name, tokenExpiresInMs } = await newCode({ scope: "read", owner: "ada", expiresInMs: 60_000 });
    expect(code).toMatch(/^code_[a-z2-7]{32}$/);
    expect([await names(), tokenExpiresInMs]).toEqual([[], 60_000]);
    const view = (await (await ask("/v1/codes/current", { as: code })).json()) as CodeView;
    expect(view).toMatchObject({ name, owner: "ada", scope: "read", by: "user", fromSocket: true });
    const response = await exchange(code);
    const newToken = (await response.json()) as NewToken;
    expect([response.status, newToken]).toMatchObject([201, { name, owner: "ada", scope: "read" }]);
    expect(await (await ask("/v1/status", { as: newToken.token })).json()).toMatchObject({ caller: { owner: "ada", scope: "read" } });
    expect((await exchange(code)).status).toBe(401);
    expect(await names()).toEqual([name]);
  });

  test("gets the same refusal if it was used, never existed or predates a restart", async () => {
    const { code } = await newCode();
    const lost = await newCode();
    await exchange(code);
    const refusals = [];
    for (const wrong of [code, `code_${"a".repeat(32)}`, "nonsense", await token("admin")]) {
      for (const path of ["exchange", "current"]) {
        const response = await ask(`/v1/codes/${path}`, { method: path === "exchange" ? "POST" : "GET", as: wrong });
        const { status, code: kind, detail, hint } = (await response.json()) as Record<string, unknown>;
        refusals.push(JSON.stringify([status, kind, detail, hint]));
      }
    }
    await server().close();
    await using again = await start();
    const response = await fetch(`${again.status.url}/v1/codes/exchange`, {
      method: "POST",
      headers: { authorization: `Bearer ${lost.code}` },
    });
    const { status, code: kind, detail, hint } = (await response.json()) as Record<string, unknown>;
    refusals.push(JSON.stringify([status, kind, detail, hint]));
    expect(new Set(refusals).size).toBe(1);
    expect(refusals[0]).toMatch(/401.*has restarted.*caisson console/);
  });

  test("is accepted only from the station's own pages", async () => {
    const { code } = await newCode();
    const own = server().status.url;
    const foreign: Record<string, string>[] = [
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: own, "sec-fetch-site": "cross-site" },
    ];
    for (const headers of foreign) expect([headers, (await exchange(code, headers)).status]).toEqual([headers, 403]);
    expect(await names()).toEqual([]);
    expect((await exchange(code, { origin: own, "sec-fetch-site": "same-origin" })).status).toBe(201);
  });

  test("counts as an invalid token of its address if guessed", async () => {
    const statuses: number[] = [];
    for (let count = 0; count < 30; count++) statuses.push((await exchange(`code_${"a".repeat(32)}`)).status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(20);
    expect(statuses.at(-1)).toBe(429);
    const { code } = await newCode();
    expect((await exchange(code)).status).toBe(201);
  });

  test("requires the scope admin, names its registrant, and expires with its token", async () => {
    for (const scope of ["read", "run"] as const) expect((await post("/v1/codes", {}, { as: await token(scope) })).status).toBe(403);
    const admin = await station().tokens.create({ name: "laptop", scope: "admin", owner: "ada" });
    const [first, second] = [await newCode({ scope: "run" }, admin.token), await newCode({}, admin.token)];
    const view = (await (await ask("/v1/codes/current", { as: first.code })).json()) as CodeView;
    expect(view).toMatchObject({ owner: "ada", scope: "run", by: "token laptop", fromSocket: false });
    expect((await exchange(first.code)).status).toBe(201);
    await station().tokens.revoke("laptop");
    expect((await exchange(second.code)).status).toBe(401);
    expect(await names()).not.toContain(second.name);
  });

  test("does not open other calls, MCP or metrics", async () => {
    const { code } = await newCode();
    for (const path of ["/v1/status", "/v1/runs", "/v1/tokens", "/metrics"])
      expect([path, (await ask(path, { as: code })).status]).toEqual([path, 401]);
    expect((await post("/mcp", {}, { as: code })).status).toBe(401);
    expect((await exchange(code)).status).toBe(201);
  });

  test("is never stored, and the audit log contains only the call", async () => {
    const { code, name } = await newCode();
    await exchange(code);
    await exchange(code);
    const audit = await (await ask("/v1/audit")).text();
    expect(audit).toContain("codes.create");
    expect(audit).toContain(`code for ${name}`);
    const secret = code.slice("code_".length);
    expect(audit).not.toContain(secret);
    const folder = join(base(), "state");
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.length).toBeGreaterThan(0);
    for (const { parentPath, name: file } of files) expect(readFileSync(join(parentPath, file), "latin1"), file).not.toContain(secret);
    expect(defects).toEqual([]);
  });
});

describe("codes in the station's memory", () => {
  const request = { scope: "admin" as const };
  const socket = { caller: { kind: "socket" } as Caller, owner: "local", by: "user" };
  function codesAt() {
    let now = Date.parse("2030-01-01T00:00:00Z");
    const known: TokenView[] = [];
    const revoked: string[] = [];
    const codes = createSignInCodes({
      now: () => now,
      tokens: {
        create: async ({ name }) => {
          const tokenView = { id: `tok_${"a".repeat(12)}`, name, scope: "admin" as const, owner: "local", createdAt: "", expiresAt: null };
          known.push(tokenView);
          return { ...tokenView, token: `secret of ${name}` };
        },
        list: async () => known,
        revoke: async (id) => {
          revoked.push(id);
          return known[0] as TokenView;
        },
      },
    });
    return { codes, known, revoked, pass: (ms: number) => (now += ms) };
  }

  test("expire after a minute", () => {
    const { codes, pass } = codesAt();
    const { code } = codes.create(request, socket);
    pass(59_999);
    expect(codes.find(code)).not.toBeNull();
    pass(1);
    expect(codes.find(code)).toBeNull();
  });

  test("are limited for each owner and in total, until they expire", () => {
    const { codes, pass } = codesAt();
    const fill = (owner: string) => {
      for (let count = 0; count < 10; count++) codes.create(request, { ...socket, owner });
    };
    const busy = expect.objectContaining({ code: "busy" });
    fill("ada");
    expect(() => codes.create(request, { ...socket, owner: "ada" })).toThrow(busy);
    for (let each = 0; each < 9; each++) fill(`owner-${each}`);
    expect(() => codes.create(request, { ...socket, owner: "bob" })).toThrow(busy);
    pass(60_000);
    fill("ada");
  });

  test("give only one token if two callers exchange the same code", async () => {
    const { codes, known } = codesAt();
    const pending = codes.find(codes.create(request, socket).code);
    if (pending === null) throw new Error("the code is not found");
    const outcomes = await Promise.allSettled([codes.exchange(pending), codes.exchange(pending)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(known).toHaveLength(1);
  });

  test("remove expired console tokens", async () => {
    const { codes, known, revoked } = codesAt();
    const old = { scope: "admin" as const, owner: "local", createdAt: "", expiresAt: "2029-01-01T00:00:00.000Z" };
    known.push({ ...old, id: "tok_bbbbbbbbbbbb", name: "console-aaaaaa" }, { ...old, id: "tok_cccccccccccc", name: "ci" });
    const pending = codes.find(codes.create(request, socket).code);
    if (pending !== null) await codes.exchange(pending);
    expect(revoked).toEqual(["tok_bbbbbbbbbbbb"]);
  });
});
