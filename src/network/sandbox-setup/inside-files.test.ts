import { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import { expect, test } from "vitest";
import { createAuthority } from "../authority/authority.ts";
import { insideFiles } from "./inside-files.ts";
import { insideNames } from "./inside-paths.ts";

const authority = createAuthority();
// Without the trailing newline, which some files lack.
const system = rootCertificates.slice(0, 3).join("\n");
const files = insideFiles({ certificatePem: authority.certificatePem, systemBundlePem: system });
const textOf = (name: string) => files.find((file) => file.name === name)?.data.toString("utf8") ?? "";

test("writes every file that the variables name, readable by all", () => {
  expect(files.map((file) => file.name).sort()).toEqual(Object.values(insideNames).sort());
  for (const file of files) expect(file.mode).toBe(0o644);
});

test("bundles the system's authorities and the sandbox's own", () => {
  const certificates = textOf("ca-bundle.pem").match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const prints = certificates.map((pem) => new X509Certificate(pem).fingerprint256);
  expect(prints).toEqual([...rootCertificates.slice(0, 3), authority.certificatePem].map((pem) => new X509Certificate(pem).fingerprint256));
  expect(textOf("ca.pem")).toBe(authority.certificatePem);
});

test("gives Java the trust store and the proxy, one option per line", () => {
  expect(textOf("java.options").trim().split("\n")).toEqual(
    expect.arrayContaining([
      "-Djavax.net.ssl.trustStore=/run/caisson/truststore.jks",
      "-Dhttps.proxyHost=127.0.0.1",
      "-Dhttps.proxyPort=19080",
    ]),
  );
});
