import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readAll, readHead } from "./testing-egress.ts";
import { createSecretRig, type SecretRig, SECRET_VALUE as value } from "./testing-secrets.ts";

let all: SecretRig;
beforeEach(async () => {
  all = await createSecretRig();
});
afterEach(() => all.rig[Symbol.asyncDispose]());

const open = async ({ rig, port }: SecretRig) =>
  await rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "site.test", { ca: rig.inside.certificatePem });
async function ask(request: { path?: string; method?: string; more?: string } = {}): Promise<string> {
  const { port, placeholder } = all;
  const tls = await open(all);
  const { path = "/api/x", method = "GET", more = "" } = request;
  tls.write(
    `${method} ${path} HTTP/1.1\r\nHost: site.test:${port}\r\nAuthorization: Bearer ${placeholder}\r\nContent-Length: 0\r\nAccept-Encoding: gzip\r\nConnection: close\r\n${more}\r\n`,
  );
  return await readAll(tls);
}

describe("N08: a secret", () => {
  test("is injected only for its host, method and path", async () => {
    const { rig, received, placeholder } = all;
    expect(await ask()).toContain("hello");
    await ask({ path: "/elsewhere" });
    await ask({ method: "POST" });
    expect(received.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${value}`,
      `Bearer ${placeholder}`,
      `Bearer ${placeholder}`,
    ]);
    expect(rig.eventsOf("secret.used")).toEqual([{ secret: "TOKEN", host: "site.test", method: "GET", path: "/api/x" }]);
    expect(rig.eventsOf("secret.withheld")).toHaveLength(2);
    await ask();
    expect(rig.eventsOf("secret.used"), "the same use is reported once").toHaveLength(1);
    expect(JSON.stringify(rig.events)).not.toContain(value);
  });

  test("makes us intercept TLS to its host, and to no other", async () => {
    const { rig, port, received, placeholder } = all;
    await expect(
      rig.secure((await rig.tunnel(`site.test:${port}`)).socket, "site.test", { ca: rig.world.certificatePem }),
    ).rejects.toThrow();
    const other = await rig.secure((await rig.tunnel(`other.test:${port}`)).socket, "other.test", {
      ca: rig.world.certificatePem,
      checkServerIdentity: () => undefined,
    });
    other.write(`GET /api/x HTTP/1.1\r\nHost: other.test\r\nAuthorization: Bearer ${placeholder}\r\nConnection: close\r\n\r\n`);
    await readAll(other);
    expect(received.at(-1)?.headers.authorization).toBe(`Bearer ${placeholder}`);
  });

  test("is redacted in the head and body of an answer, which is not compressed", async () => {
    const { received, placeholder } = all;
    all.answer.headers = { "x-echo": `Bearer ${value}` };
    all.answer.body = `you sent ${value} and ${Buffer.from(value).toString("base64")}`;
    const text = await ask();
    expect(text).toContain(`x-echo: Bearer ${placeholder}`);
    expect(text).toContain(`you sent ${placeholder} and`);
    expect(text).not.toContain(value);
    expect(text).not.toContain(Buffer.from(value).toString("base64"));
    expect(received[0]?.headers["accept-encoding"]).toBe("identity");
    // Even if this request did not send it.
    expect(await ask({ path: "/elsewhere" })).not.toContain(value);
  });

  test("is never injected over plain HTTP", async () => {
    const { rig, placeholder } = all;
    const seen: unknown[] = [];
    const plain = await rig.http((request, response) => response.end(void seen.push(request.headers.authorization)));
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [plain], private: true }] });
    const socket = await rig.dial();
    socket.write(
      `GET http://site.test:${plain}/api/x HTTP/1.1\r\nHost: site.test:${plain}\r\nAuthorization: Bearer ${placeholder}\r\nConnection: close\r\n\r\n`,
    );
    await readAll(socket);
    expect(seen).toEqual([`Bearer ${placeholder}`]);
    expect(rig.eventsOf("secret.withheld")).toMatchObject([{ secret: "TOKEN", host: "site.test" }]);
  });

  test("S05: ends its connections when revoked, and is not sent again", async () => {
    const { rig, port, received, placeholder, secrets } = all;
    const tls = await open(all);
    tls.write(`GET /api/x HTTP/1.1\r\nHost: site.test:${port}\r\nAuthorization: Bearer ${placeholder}\r\n\r\n`);
    expect(await readHead(tls)).toContain("200 OK");
    secrets.revoke("TOKEN");
    rig.egress.enforce();
    await readAll(tls);
    const text = await ask();
    expect(text).toMatch(/^HTTP\/1\.1 502 [\s\S]*x-caisson-denied: secret_unavailable/);
    expect(received).toHaveLength(1);
  });

  test("is never sent to an unverified server", async () => {
    const { rig, received, placeholder } = all;
    const impostor = await rig.https((request) => void received.push(request as never), { host: "impostor.test" });
    all.useAt(impostor);
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [impostor], private: true }] });
    const tls = await rig.secure((await rig.tunnel(`site.test:${impostor}`)).socket, "site.test");
    tls.write(`GET /api HTTP/1.1\r\nHost: site.test:${impostor}\r\nAuthorization: Bearer ${placeholder}\r\nConnection: close\r\n\r\n`);
    expect(await readAll(tls)).toContain("not_verified");
    expect(received).toEqual([]);
  });
});
