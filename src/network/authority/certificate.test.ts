import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { authorityCertificate, leafCertificate, pemOf } from "./certificate.ts";

const { privateKey: key } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const now = new Date("2048-06-01T12:00:00Z");
const root = authorityCertificate(key, now);
const validity = { from: new Date("2048-05-31T12:00:00Z"), to: new Date("2058-06-01T12:00:00Z") };

function leafFor(host: string): X509Certificate {
  return new X509Certificate(leafCertificate({ host, publicKey, issuer: { key, certificate: root, validity }, now }));
}

test.each([
  ["example.com", "DNS:example.com"],
  ["203.0.113.7", "IP Address:203.0.113.7"],
  ["::1", "IP Address:0:0:0:0:0:0:0:1"],
  ["::", "IP Address:0:0:0:0:0:0:0:0"],
  ["2001:db8::5:0:0:1", "IP Address:2001:DB8:0:0:5:0:0:1"],
  ["2001:db8:1:2:3:4:5:6", "IP Address:2001:DB8:1:2:3:4:5:6"],
  ["fe80::", "IP Address:FE80:0:0:0:0:0:0:0"],
  ["::ffff:10.0.0.1", "IP Address:0:0:0:0:0:FFFF:A00:1"],
])("a certificate for %s names %s", (host, name) => {
  const leaf = leafFor(host);
  expect(leaf.subjectAltName).toBe(name);
  expect(name.startsWith("IP") ? leaf.checkIP(host) : leaf.checkHost(host)).toBe(host);
  expect(leaf.checkIssued(new X509Certificate(root))).toBe(true);
});

test("encodes validity past 2049 and unique serial numbers", () => {
  const certificate = new X509Certificate(root);
  expect(certificate.validFrom).toBe("May 31 12:00:00 2048 GMT");
  expect(certificate.validTo).toBe("Jun  1 12:00:00 2058 GMT");
  expect(new Set(Array.from({ length: 50 }, () => leafFor("example.com").serialNumber)).size).toBe(50);
  expect(certificate.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
});

test("PEM encoding keeps every byte", () => {
  expect(new X509Certificate(pemOf(root)).raw).toEqual(root);
});
