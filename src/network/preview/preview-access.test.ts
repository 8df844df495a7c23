import { describe, expect, test } from "vitest";
import { parseRequestHead } from "../http/head.ts";
import { createPreviewAccess } from "./preview-access.ts";
import { isPreviewToken, newPreviewToken } from "./preview-token.ts";

const token = "abcdefghijklmnopqrstuvwxyz234567";
const other = "bbcdefghijklmnopqrstuvwxyz234567";
const access = createPreviewAccess({ token, cookieId: 4000 });
const ask = (line: string, ...headers: string[]) =>
  access(parseRequestHead(Buffer.from(`${[`${line} HTTP/1.1`, ...headers].join("\r\n")}\r\n\r\n`)));

test("tokens are unique labels of host names", () => {
  const tokens = Array.from({ length: 100 }, newPreviewToken);
  expect(new Set(tokens).size).toBe(100);
  for (const each of tokens) expect(isPreviewToken(each)).toBe(true);
  for (const weak of ["", "abc", "A".repeat(30), "a".repeat(64), "a.b".repeat(10)]) expect(isPreviewToken(weak)).toBe(false);
});

describe("a token in the host name", () => {
  test.each([`${token}.localhost:4000`, `${token}.localhost`, `${token.toUpperCase()}.LocalHost:9`, `${token}.localhost.:4000`])(
    "admits %s",
    (host) => {
      expect(ask("POST /a?b=c", `Host: ${host}`)).toEqual({ kind: "open", path: "/a?b=c", byHost: true });
    },
  );
  test.each([
    "127.0.0.1:4000",
    "localhost:4000",
    `${other}.localhost:4000`,
    `x.${token}.localhost:4000`,
    `${token}.example.com`,
    `${token}localhost`,
    ".localhost",
    token,
  ])("does not admit %s", (host) => {
    expect(ask("GET /", `Host: ${host}`)).toEqual({ kind: "refused" });
  });
  test("does not admit CONNECT", () => {
    expect(ask(`CONNECT ${token}.localhost:4000`, `Host: ${token}.localhost:4000`)).toEqual({ kind: "refused" });
  });
});

describe("a token in the query", () => {
  test("becomes a cookie, with a redirect to the address without it", () => {
    expect(ask(`GET /a?x=1&caisson-token=${token}&y=2`, "Host: 127.0.0.1:4000")).toEqual({
      kind: "enter",
      path: "/a?x=1&y=2",
      cookie: `caisson-preview-4000=${token}; HttpOnly; SameSite=Strict; Path=/`,
    });
    expect(ask(`GET /?caisson-token=${token}`, "Host: 127.0.0.1:4000")).toMatchObject({ path: "/" });
  });
  test("is removed from the forwarded request", () => {
    expect(ask(`POST /?caisson-token=${token}`, "Host: 127.0.0.1:4000")).toEqual({ kind: "open", path: "/", byHost: false });
    expect(ask(`GET /?caisson-token=${token}`, `Host: ${token}.localhost:4000`)).toEqual({ kind: "open", path: "/", byHost: true });
  });
  test("must be correct", () => {
    expect(ask(`GET /?caisson-token=${other}`, "Host: 127.0.0.1:4000")).toEqual({ kind: "refused" });
    expect(ask(`GET /caisson-token=${token}`, "Host: 127.0.0.1:4000")).toEqual({ kind: "refused" });
  });
});

describe("a token in a cookie", () => {
  const cookie = `Cookie: a=b; caisson-preview-4000=${token}; c=d`;
  const host = "Host: 127.0.0.1:4000";
  const open = { kind: "open", path: "/", byHost: false };
  test("admits pages of this preview", () => {
    expect(ask("GET /", host, cookie)).toEqual(open);
    expect(ask("DELETE /", host, cookie, "Origin: http://127.0.0.1:4000", "Sec-Fetch-Site: same-origin")).toEqual(open);
    expect(ask("GET /", host, cookie, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate")).toEqual(open);
  });
  test.each([
    ["another's token", ["Cookie: caisson-preview-4000=bbcdefghijklmnopqrstuvwxyz234567"]],
    ["another's cookie", [`Cookie: caisson-preview-4001=${token}`]],
    ["a request from a page on another port", [cookie, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"]],
    ["a request from a page on another port, by an older browser", [cookie, "Origin: http://127.0.0.1:5000"]],
    ["a request with a null origin", [cookie, "Origin: null"]],
    ["a socket from a page on another port", [cookie, "Connection: upgrade", "Upgrade: websocket", "Origin: http://127.0.0.1:5000"]],
  ])("refuses %s", (_what, headers) => {
    expect(ask("GET /", host, ...headers)).toEqual({ kind: "refused" });
  });
  test("refuses a form from a page on another port", () => {
    expect(ask("POST /", host, cookie, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate")).toEqual({ kind: "refused" });
  });
});
