import { describe, expect, test } from "vitest";
import type { RequestHead, ResponseHead } from "../http/head.ts";
import { header } from "../http/headers.ts";
import { createPreviewRewrite } from "./preview-rewrite.ts";

const token = "abcdefghijklmnopqrstuvwxyz234567";
const host = `${token}.localhost:4000`;
const rewrite = createPreviewRewrite({ token, port: 5173 });

function request(headers: Record<string, string>, path = "/"): { target: string; headers: Record<string, string> } {
  const head: RequestHead = {
    method: "GET",
    target: path,
    version: "1.1",
    headers: Object.entries(headers).map(([name, value]) => header(name, value)),
  };
  const after = rewrite.request(head, path);
  return { target: after.target, headers: Object.fromEntries(after.headers.map(({ lower, value }) => [lower, value])) };
}
function response(name: string, value: string, byHost = true): [string, string][] {
  const head: ResponseHead = { version: "1.1", status: 200, reason: "OK", headers: [header(name, value)] };
  return rewrite.response(head, { host, byHost }).headers.map((each) => [each.lower, each.value]);
}

describe("the request inside", () => {
  test("uses the name that the program knows", () => {
    expect(request({ Host: host, Origin: `http://${host}`, Referer: `http://${host}/a?b` }).headers).toEqual({
      host: "localhost:5173",
      origin: "http://localhost:5173",
      referer: "http://localhost:5173/a?b",
    });
    expect(request({ Host: "127.0.0.1:4000", Origin: "http://127.0.0.1:4000" }).headers.origin).toBe("http://localhost:5173");
  });
  test("keeps another page's origin", () => {
    const foreign = { Origin: "http://127.0.0.1:40001", Referer: "https://example.com/127.0.0.1:4000" };
    expect(request({ Host: "127.0.0.1:4000", ...foreign }).headers).toMatchObject({ origin: foreign.Origin, referer: foreign.Referer });
  });
  test("omits the cookies of previews", () => {
    expect(request({ Host: host, Cookie: `caisson-preview-4000=${token}` }).headers.cookie).toBeUndefined();
    expect(request({ Host: host, Cookie: `a=1; caisson-preview-4000=${token}; b=2; caisson-preview-9=x` }).headers.cookie).toBe("a=1; b=2");
  });
  test("omits the token everywhere", () => {
    const { target, headers } = request(
      { Host: host, "X-Page": `http://${host}/x`, "X-Token": token },
      `/go?to=http://${host}/a&then=http%3A%2F%2F${token}.localhost%3A4000%2Fb&x=${token}.localhost`,
    );
    expect(target).toBe("/go?to=http://localhost:5173/a&then=http%3A%2F%2Flocalhost%3A5173%2Fb&x=localhost:5173");
    expect(JSON.stringify(headers)).not.toContain(token);
    expect(headers["x-page"]).toBe("http://localhost:5173/x");
  });
});

describe("the response to the browser", () => {
  test.each([
    ["http://localhost:5173/login?a=b", "/login?a=b"],
    ["http://127.0.0.1:5173", "/"],
    ["https://[::1]:5173/x", "/x"],
    ["http://LOCALHOST:5173?x", "/?x"],
    ["http://localhost:5173//evil.example/", "/.//evil.example/"],
    ["http://localhost:51730/", "http://localhost:51730/"],
    ["http://localhost:5173.evil.example/", "http://localhost:5173.evil.example/"],
    ["https://example.com/localhost:5173/", "https://example.com/localhost:5173/"],
    ["/there", "/there"],
  ])("changes Location %s to %s", (from, to) => {
    expect(response("Location", from)).toEqual([["location", to]]);
  });
  test("recognizes port 80 without its number", () => {
    const plain = createPreviewRewrite({ token, port: 80 });
    const head: ResponseHead = { version: "1.1", status: 302, reason: "", headers: [header("Location", "http://localhost/a")] };
    expect(plain.response(head, { host, byHost: true }).headers[0]?.value).toBe("/a");
  });
  test("keeps cookies on this origin, and does not let the program set ours", () => {
    expect(response("Set-Cookie", "a=1; Domain=localhost; Path=/; HttpOnly")).toEqual([["set-cookie", "a=1; Path=/; HttpOnly"]]);
    expect(response("Set-Cookie", "domain=2;domain=.localhost")).toEqual([["set-cookie", "domain=2"]]);
    expect(response("Set-Cookie", "caisson-preview-4000=stolen")).toEqual([]);
  });
  test("replaces the allowed origin with the browser's", () => {
    expect(response("Access-Control-Allow-Origin", "http://localhost:5173")).toEqual([["access-control-allow-origin", `http://${host}`]]);
    expect(response("Access-Control-Allow-Origin", "*")).toEqual([["access-control-allow-origin", "*"]]);
  });
  test("hides the page's name, which is its key, from other sites", () => {
    expect(response("Content-Type", "text/html; charset=utf-8")).toContainEqual(["referrer-policy", "same-origin"]);
    expect(response("Content-Type", "text/html", false)).toHaveLength(1);
    expect(response("Content-Type", "text/css")).toHaveLength(1);
  });
});
