import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CodeView, NewCode } from "../contract/sign-in-code.ts";
import type { NewToken, TokenView } from "../contract/token-verbs.ts";
import type { Caller } from "./call.ts";
import { createSignInCodes } from "./sign-in-codes.ts";
import { useServer } from "./testing.ts";

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
    const made = (await response.json()) as NewToken;
    expect([response.status, made]).toMatchObject([201, { name, owner: "ada", scope: "read" }]);
    expect(await (await ask("/v1/status", { as: made.token })).json()).toMatchObject({ caller: { owner: "ada", scope: "read" } });
    expect((await exchange(code)).status).toBe(401);
    expect(await names()).toEqual([name]);
  });

  test("that was used, never existed, or is from before a restart gets the same refusal", async () => {
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

  test("is taken from pages of the station alone", async () => {
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

  test("that is guessed counts as a wrong token of its address", async () => {
    const statuses: number[] = [];
    for (let count = 0; count < 30; count++) statuses.push((await exchange(`code_${"a".repeat(32)}`)).status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(20);
    expect(statuses.at(-1)).toBe(429);
    const { code } = await newCode();
    expect((await exchange(code)).status).toBe(201);
  });

  test("is registered with the scope admin alone, says who registered it, and dies with that token", async () => {
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

  test("opens no other call, and no WebSocket, MCP or figures", async () => {
    const { code } = await newCode();
    for (const path of ["/v1/status", "/v1/runs", "/v1/tokens", "/metrics"])
      expect([path, (await ask(path, { as: code })).status]).toEqual([path, 401]);
    expect((await post("/mcp", {}, { as: code })).status).toBe(401);
    expect((await exchange(code)).status).toBe(201);
  });

  test("is in no file of the state folder, and the audit log names the call alone", async () => {
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
          const made = { id: `tok_${"a".repeat(12)}`, name, scope: "admin" as const, owner: "local", createdAt: "", expiresAt: null };
          known.push(made);
          return { ...made, token: `secret of ${name}` };
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

  test("are bounded for an owner and in all, until they expire", () => {
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

  test("give one token to one of two who exchange the same at once", async () => {
    const { codes, known } = codesAt();
    const pending = codes.find(codes.create(request, socket).code);
    if (pending === null) throw new Error("the code is not found");
    const outcomes = await Promise.allSettled([codes.exchange(pending), codes.exchange(pending)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(known).toHaveLength(1);
  });

  test("remove tokens of consoles that have expired", async () => {
    const { codes, known, revoked } = codesAt();
    const old = { scope: "admin" as const, owner: "local", createdAt: "", expiresAt: "2029-01-01T00:00:00.000Z" };
    known.push({ ...old, id: "tok_bbbbbbbbbbbb", name: "console-aaaaaa" }, { ...old, id: "tok_cccccccccccc", name: "ci" });
    const pending = codes.find(codes.create(request, socket).code);
    if (pending !== null) await codes.exchange(pending);
    expect(revoked).toEqual(["tok_bbbbbbbbbbbb"]);
  });
});
