import { expect, test } from "vitest";
import { SecretConfig } from "../../contract/network/network.ts";
import type { EgressSecrets } from "../egress/egress-options.ts";
import type { RequestHead } from "../http/head.ts";
import { createSecretBook, type RunSecretCommand, type SecretBook, type SecretDestination } from "./secret-book.ts";

const token = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";

function bookOf(
  configs: Record<string, unknown>,
  options: { env?: Record<string, string>; runCommand?: RunSecretCommand; revoked?: string[] } = {},
): SecretBook {
  return createSecretBook({
    configs: Object.fromEntries(Object.entries(configs).map(([name, config]) => [name, SecretConfig.parse(config)])),
    env: options.env ?? { TOKEN: token, OTHER: "other-value-0123456789" },
    runCommand: options.runCommand ?? (async () => ""),
    revoked: options.revoked ?? [],
  });
}

function request(headers: Record<string, string>, line: { method?: string; target?: string } = {}): RequestHead {
  return {
    method: line.method ?? "GET",
    target: line.target ?? "/repos/x",
    version: "1.1",
    headers: Object.entries(headers).map(([name, value]) => ({ name, lower: name.toLowerCase(), value })),
  };
}

const there: SecretDestination = { host: "api.example.com", port: 443, tls: true };
const headerOf = (head: RequestHead, name: string) => head.headers.filter(({ lower }) => lower === name).map(({ value }) => value);

test("implements what egress needs", () => {
  const secrets: EgressSecrets = bookOf({ TOKEN: { hosts: ["api.example.com"] } });
  expect(secrets.concerns("API.example.com", 443)).toBe(true);
  expect(secrets.concerns("api.example.com", 80)).toBe(false);
  expect(secrets.concerns("example.com", 443)).toBe(false);
});

test("replaces placeholders with values, in any header and at any place", async () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"] }, OTHER: { hosts: ["api.example.com"] } });
  const { TOKEN = "", OTHER = "" } = book.placeholders;
  const head = request({
    Authorization: `Bearer ${TOKEN}`,
    "X-Two": `a=${OTHER};b=${TOKEN};c=${OTHER}`,

    Host: "api.example.com",
  });
  const result = await book.inject(head, there);
  expect(result.used.sort()).toEqual(["OTHER", "TOKEN"]);
  expect(result.withheld).toEqual([]);
  expect(headerOf(result.head, "authorization")).toEqual([`Bearer ${token}`]);
  expect(headerOf(result.head, "x-two")).toEqual([`a=other-value-0123456789;b=${token};c=other-value-0123456789`]);
  expect(result.head.headers.map(({ name }) => name)).toEqual(head.headers.map(({ name }) => name));
  expect(headerOf(head, "authorization")).toEqual([`Bearer ${TOKEN}`]);
});

test("replaces placeholders within Basic credentials", async () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"], header: "Authorization" } });
  const encoded = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  for (const user of ["x", "me", "x-access-token", "jürgen"]) {
    const { head, used } = await book.inject(request({ authorization: encoded(user, book.placeholders.TOKEN ?? "") }), there);
    expect(used).toEqual(["TOKEN"]);
    expect(headerOf(head, "authorization")).toEqual([encoded(user, token)]);
  }
});

test("does not change a request without a placeholder", async () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"] } });
  const head = request({ Authorization: "Basic !!!", "X-Long": "y".repeat(5000), "Accept-Encoding": "gzip" });
  expect(await book.inject(head, there)).toEqual({ head, used: [], withheld: [] });
  expect((await book.inject(head, there)).head).toBe(head);
});

const scoped = { hosts: ["api.example.com", "*.example.org"], methods: ["GET"], paths: ["/repos", "/user/"] };
test.each<[string, Partial<SecretDestination>, { method?: string; target?: string }, Record<string, string>]>([
  ["its scope does not include this host", { host: "example.com" }, {}, {}],
  ["its scope does not include this host", { host: "api.example.com.evil.com" }, {}, {}],
  ["its scope does not include this host", { host: "example.org" }, {}, {}],
  ["its scope does not include this host", { host: "notexample.org" }, {}, {}],
  ["its scope does not include port 8443", { port: 8443 }, {}, {}],
  ["it is only sent over TLS", { tls: false }, {}, {}],
  ["its scope does not include POST", {}, { method: "POST" }, {}],
  ["its scope does not include get", {}, { method: "get" }, {}],
  ["its scope does not include this path", {}, { target: "/reposx" }, {}],
  ["its scope does not include this path", {}, { target: "/" }, {}],
  ["its scope does not include this path", {}, { target: "/REPOS" }, {}],
  ["the path can be read in more than one way", {}, { target: "/repos/../admin" }, {}],
  ["the path can be read in more than one way", {}, { target: "/repos/%2e%2e/admin" }, {}],
  ["the path can be read in more than one way", {}, { target: "/repos/..;/admin" }, {}],
  ["the path can be read in more than one way", {}, { target: "//repos" }, {}],
  ["the path can be read in more than one way", {}, { target: "/repos\\..\\admin" }, {}],
  ["a header changes the request's method", {}, {}, { "X-HTTP-Method-Override": "DELETE" }],
  ["a header changes the request's path", {}, {}, { "X-Original-URL": "/admin" }],
])("withholds the value: %s (%j, %j)", async (why, to, line, more) => {
  const book = bookOf({ TOKEN: scoped });
  const head = request({ Authorization: `Bearer ${book.placeholders.TOKEN}`, ...more }, line);
  const result = await book.inject(head, { ...there, ...to });
  expect(result).toEqual({ head, used: [], withheld: [{ secret: "TOKEN", why }] });
});

test.each<[Partial<SecretDestination>, { target?: string }]>([
  [{ host: "a.b.example.org" }, {}],
  [{ host: "api.example.com" }, { target: "/repos" }],
  [{ host: "api.example.com" }, { target: "/user?x=../.." }],
])("sends the value to %j %j", async (to, line) => {
  const book = bookOf({ TOKEN: scoped });
  const result = await book.inject(request({ Authorization: `Bearer ${book.placeholders.TOKEN}` }, line), { ...there, ...to });
  expect(result.used).toEqual(["TOKEN"]);
});

test("sends the value only in its header, never in framing, names or URLs", async () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"], header: "Authorization" } });
  const { TOKEN = "" } = book.placeholders;
  const head = request(
    { "X-Token": TOKEN, Host: TOKEN, [`X-${TOKEN}`]: "1", Authorization: `token ${TOKEN}` },
    { target: `/x?token=${TOKEN}` },
  );
  const result = await book.inject(head, there);
  expect(result.used).toEqual(["TOKEN"]);
  expect(result.withheld.map(({ why }) => why).sort()).toEqual([
    "it is in a header name",
    "it is in the request's URL, which servers log",
    "it is never sent in the header host",
    "it is only sent in the header authorization",
  ]);
  expect(JSON.stringify(result.head).split(token)).toHaveLength(2);
  expect(result.head.target).toBe(`/x?token=${TOKEN}`);
});

test("stops a request to its host if the value is not available", async () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"] } }, { env: {} });
  const head = request({ Authorization: book.placeholders.TOKEN ?? "" });
  await expect(book.inject(head, there)).rejects.toMatchObject({
    code: "denied",
    details: { reason: "secret_unavailable", secret: "TOKEN" },
  });
  expect((await book.inject(head, { ...there, host: "elsewhere.com" })).withheld).toHaveLength(1);
  await expect(book.check()).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("TOKEN") });
  await book.load();
});

test("revokes at once, even for a request that waits for the value", async () => {
  const output = Promise.withResolvers<string>();
  const book = bookOf({ TOKEN: { from: { command: ["x"] }, hosts: ["api.example.com"] } }, { runCommand: () => output.promise });
  const revokedNames: string[] = [];
  const stop = book.onRevoked((name) => revokedNames.push(name));
  const head = request({ Authorization: book.placeholders.TOKEN ?? "" });
  const waiting = book.inject(head, there);
  book.revoke("TOKEN");
  book.revoke("TOKEN");
  book.revoke("UNKNOWN");
  output.resolve(token);
  await expect(waiting).rejects.toMatchObject({ details: { reason: "secret_unavailable" }, message: expect.stringContaining("revoked") });
  await expect(book.inject(head, there)).rejects.toMatchObject({ details: { reason: "secret_unavailable" } });
  expect(revokedNames).toEqual(["TOKEN"]);
  expect([book.isRevoked("TOKEN"), book.isRevoked("UNKNOWN"), book.concerns("api.example.com", 443)]).toEqual([true, false, true]);
  expect(book.redactor().text(token)).toBe("[secret TOKEN]");
  stop();
});

test("stays revoked, and needs no value then", async () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"] } }, { env: {}, revoked: ["TOKEN"] });
  await book.check();
  await expect(book.inject(request({ A: book.placeholders.TOKEN ?? "" }), there)).rejects.toMatchObject({
    details: { reason: "secret_unavailable" },
  });
});

test("has placeholders in the shape of their secrets, in every process", async () => {
  const configs = { TOKEN: { hosts: ["a.com"] }, OTHER: { from: { command: ["x"] }, hosts: ["a.com"] } };
  const runCommand = async () => "sk-live-0123456789abcdef0123456789abcdef\n";
  const early = bookOf(configs, { env: { TOKEN: token }, runCommand });
  expect(early.placeholders.TOKEN).toMatch(/^ghp_[A-Za-z0-9]{32}$/);
  expect(early.placeholders.OTHER).toMatch(/^caisson_/);
  const late = bookOf(configs, { env: { TOKEN: token }, runCommand });
  await late.check();
  expect(late.placeholders.OTHER).toMatch(/^sk-live-[0-9a-f]{32}$/);
  const parsed = Object.fromEntries(Object.entries(configs).map(([name, config]) => [name, SecretConfig.parse(config)]));
  const again = createSecretBook({ configs: parsed, placeholders: { ...late.placeholders }, env: {}, runCommand });
  expect(again.placeholders).toEqual(late.placeholders);
});

test("uses a changed value of another length, and redacts it", async () => {
  const values = ["first-value-of-some-length", "second-value"];
  let now = 0;
  const book = createSecretBook({
    configs: { TOKEN: SecretConfig.parse({ from: { command: ["x"] }, hosts: ["api.example.com"] }) },
    env: {},
    runCommand: async () => values.shift() ?? "",
    now: () => now,
  });
  await book.check();
  const head = request({ Authorization: book.placeholders.TOKEN ?? "" });
  await book.inject(head, there);
  now += 60_000;
  const { used, head: sent } = await book.inject(head, there);
  expect(headerOf(sent, "authorization")).toEqual(["second-value"]);
  const echoed = book.answerRedactor(used)?.head({
    version: "1.1",
    status: 200,
    reason: "",
    headers: [{ name: "X", lower: "x", value: "first-value-of-some-length, second-value" }],
  });
  expect(echoed?.headers[0]?.value).toBe(`${book.placeholders.TOKEN}, ************`);
});

test("redacts answers only if a secret was used", () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"] } });
  expect(book.answerRedactor([])).toBeNull();
  expect(bookOf({}).placeholders).toEqual({});
});

test("shows no value", async () => {
  const book = bookOf({ TOKEN: { hosts: ["api.example.com"] } });
  await book.load();
  expect(JSON.stringify(book)).not.toContain(token);
  expect(JSON.stringify(book.placeholders)).not.toContain(token);
});
