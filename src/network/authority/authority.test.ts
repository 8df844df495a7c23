import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { type Authority, createAuthority } from "./authority.ts";
import { serveWithAuthority } from "./testing-authority.ts";

const DAY_MS = 86_400_000;

/** Returns the certificate that a client of this host receives. Throws if the client's verification fails. */
async function handshake(authority: Authority, host: string, trusted = authority): Promise<X509Certificate> {
  await using server = await serveWithAuthority(authority);
  const isAddress = host === "127.0.0.1";
  const client = connect({ host: "127.0.0.1", port: server.port, ...(isAddress ? {} : { servername: host }), ca: trusted.certificatePem });
  try {
    await once(client, "secureConnect");
    return new X509Certificate(client.getPeerCertificate().raw);
  } finally {
    client.destroy();
  }
}

test.each(["api.example.com", "a_b.example.com", `${"x".repeat(60)}.${"y".repeat(60)}.example.com`])(
  "serves a client of %s",
  async (host) => {
    const certificate = await handshake(createAuthority(), host);
    expect(certificate.subjectAltName).toBe(`DNS:${host}`);
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
    expect(certificate.ca).toBe(false);
  },
);

test("serves a client of an address", async () => {
  expect((await handshake(createAuthority(), "127.0.0.1")).subjectAltName).toBe("IP Address:127.0.0.1");
});

test("an authority is not trusted by another sandbox, even under the same name", async () => {
  await expect(handshake(createAuthority(), "example.com", createAuthority())).rejects.toThrow(/certificate/);
});

test("an authority is the same after it was stored and opened", async () => {
  const authority = createAuthority();
  const stored = JSON.parse(JSON.stringify(authority.toStored()));
  const again = createAuthority(stored);
  expect(again.toStored()).toEqual(authority.toStored());
  await handshake(again, "example.com", authority);
});

test("an authority's certificate is a CA certificate, valid for ten years", () => {
  const certificate = new X509Certificate(createAuthority().certificatePem);
  expect(certificate.subject).toBe("CN=Caisson sandbox authority");
  expect(certificate.ca).toBe(true);
  expect(Date.parse(certificate.validFrom)).toBeLessThan(Date.now() - DAY_MS + 60_000);
  expect((Date.parse(certificate.validTo) - Date.now()) / DAY_MS).toBeGreaterThan(3650);
});

test.each([
  ["from the beginning", 0],
  ["in the middle", 1000],
  ["near its end", 3600],
])("a leaf is valid within its authority's validity, %s", async (_when, days) => {
  const stored = createAuthority(undefined, { now: () => new Date(Date.now() - days * DAY_MS) }).toStored();
  const authority = createAuthority(stored);
  const leaf = await handshake(authority, "example.com");
  const root = new X509Certificate(stored.certificatePem);
  expect(Date.parse(leaf.validFrom)).toBeGreaterThanOrEqual(Date.parse(root.validFrom));
  expect(Date.parse(leaf.validTo)).toBeLessThanOrEqual(Date.parse(root.validTo));
  expect(Date.parse(leaf.validTo) - Date.parse(leaf.validFrom)).toBeLessThan(397 * DAY_MS);
  expect(leaf.checkIssued(root)).toBe(true);
  expect(leaf.verify(root.publicKey)).toBe(true);
});

test("caches contexts by last use, and renews old ones", () => {
  let now = Date.now();
  const authority = createAuthority(undefined, { contextsMax: 2, now: () => new Date(now) });
  const first = authority.contextFor("a.example");
  authority.contextFor("b.example");
  expect(authority.contextFor("A.example.")).toBe(first);
  authority.contextFor("c.example");
  expect(authority.contextFor("a.example")).toBe(first);
  now += 31 * DAY_MS;
  expect(authority.contextFor("a.example")).not.toBe(first);
  const second = authority.contextFor("a.example");
  authority.contextFor("b.example");
  authority.contextFor("c.example");
  expect(authority.contextFor("a.example")).not.toBe(second);
});

test.each([
  "",
  ".",
  "a..b",
  "*.example.com",
  "a b",
  "exämple.com",
  "a/b",
  "a:b",
  "fe80::1%eth0",
  "a".repeat(64),
  `${"a.".repeat(127)}aa`,
  "a\0b",
])("creates no certificate for %j", (host) => {
  expect(() => createAuthority().contextFor(host)).toThrowError(expect.objectContaining({ code: "invalid" }));
});

test.each(["::1", "[2001:db8::1]", "2001:db8:0:0:1:0:0:1", "::ffff:10.0.0.1", "::"])("creates a certificate for %s", async (host) => {
  expect(createAuthority().contextFor(host)).toBeDefined();
});

test("rejects a damaged stored authority without quoting its key", () => {
  const one = createAuthority().toStored();
  const other = createAuthority().toStored();
  const refused = (stored: { keyPem: string; certificatePem: string }) => {
    try {
      createAuthority(stored);
    } catch (error) {
      return `${JSON.stringify(error)} ${(error as Error).stack} ${(error as Error).cause ?? ""}`;
    }
    throw new Error("it was taken");
  };
  for (const stored of [
    { ...one, keyPem: other.keyPem },
    { ...one, keyPem: one.keyPem.replace(/[A-Za-z]{9}/g, "AAAAAAAAA") },
    { ...one, certificatePem: "" },
  ]) {
    const errorText = refused(stored);
    expect(errorText).toContain('"code":"invalid"');
    for (const line of stored.keyPem.split("\n").slice(1, -2)) expect(errorText).not.toContain(line);
  }
});
