import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAuthority } from "./authority.ts";
import { JAVA_KEY_STORE_PASSWORD, javaKeyStore } from "./java-key-store.ts";
import { serveWithAuthority } from "./testing-authority.ts";

/** The clients that agents use. Each has its own certificate parser, and trusts only the authority's file. */
const run = promisify(execFile);
const authority = createAuthority();
let folder = "";
let server: Awaited<ReturnType<typeof serveWithAuthority>>;
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "caisson-authority-"));
  writeFileSync(at("authority.pem"), authority.certificatePem);
  writeFileSync(at("other.pem"), createAuthority().certificatePem);
  writeFileSync(at("authority.jks"), javaKeyStore([authority.certificatePem, createAuthority().certificatePem]));
  server = await serveWithAuthority(authority);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function has(program: string): boolean {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`]);
    return true;
  } catch {
    return false;
  }
}
const hosts = ["127.0.0.1", "localhost"];
const url = (host: string) => `https://${host}:${server.port}/`;

test.skipIf(!has("openssl"))("openssl verifies the chain in strict mode (skipped without openssl)", async () => {
  for (const host of hosts) {
    const verification = run("sh", [
      "-c",
      `openssl s_client -connect 127.0.0.1:${server.port} ${host === "localhost" ? "-servername localhost" : ""} </dev/null 2>/dev/null | openssl x509 > ${at("leaf.pem")}
       openssl verify -x509_strict -purpose sslserver ${host === "localhost" ? "-verify_hostname" : "-verify_ip"} ${host} -CAfile ${at("authority.pem")} ${at("leaf.pem")}
       openssl verify -x509_strict -CAfile ${at("authority.pem")} ${at("authority.pem")}`,
    ]);
    expect((await verification).stdout.match(/OK$/gm)).toHaveLength(2);
  }
});

test.skipIf(!has("openssl"))("openssl shows the constraints and key usage of a CA", async () => {
  const { stdout } = await run("openssl", ["x509", "-in", at("authority.pem"), "-noout", "-text"]);
  expect(stdout).toMatch(/Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
  expect(stdout).toMatch(/Key Usage: critical\s+Certificate Sign, CRL Sign\n/);
  expect(stdout).toMatch(/Subject Key Identifier/);
});

test.skipIf(!has("curl"))("curl accepts the authority (skipped without curl)", async () => {
  for (const host of hosts) {
    expect((await run("curl", ["-sS", "--noproxy", "*", "--cacert", at("authority.pem"), url(host)])).stdout).toBe("hello\n");
  }
  await expect(run("curl", ["-sS", "--noproxy", "*", url("localhost")])).rejects.toThrow(/certificate/);
});

test("node accepts the authority", async () => {
  const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: at("authority.pem") };
  const program = "fetch(process.argv[1]).then((answer) => answer.text()).then((text) => process.stdout.write(text))";
  for (const host of hosts) expect((await run(process.execPath, ["-e", program, url(host)], { env })).stdout).toBe("hello\n");
});

test.skipIf(!has("python3"))("python accepts it as strictly as 3.13 does (skipped without python3)", async () => {
  const program = [
    "import ssl, sys, urllib.request",
    "context = ssl.create_default_context()",
    "context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN",
    "opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))",
    "sys.stdout.write(opener.open(sys.argv[1]).read().decode())",
  ].join("\n");
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, SSL_CERT_FILE: at("authority.pem") };
  for (const host of hosts) expect((await run("python3", ["-c", program, url(host)], { env })).stdout).toBe("hello\n");
});

test.skipIf(!has("git"))("git completes the TLS handshake and finds no repository (skipped without git)", async () => {
  const env = { PATH: process.env.PATH, HOME: folder, GIT_SSL_CAINFO: at("authority.pem"), GIT_TERMINAL_PROMPT: "0" };
  await expect(run("git", ["ls-remote", `${url("localhost")}x.git`], { env })).rejects.toThrow(/not valid|not found|info\/refs/);
  await expect(run("git", ["ls-remote", `${url("localhost")}x.git`], { env: { ...env, GIT_SSL_CAINFO: at("other.pem") } })).rejects.toThrow(
    /certificate/,
  );
});

test.skipIf(!has("keytool"))("keytool lists the trust store (skipped without keytool)", async () => {
  const { stdout } = await run("keytool", ["-list", "-keystore", at("authority.jks"), "-storepass", JAVA_KEY_STORE_PASSWORD]);
  expect(stdout).toContain("caisson-0, ");
  expect(stdout.match(/trustedCertEntry/g)).toHaveLength(2);
});

test.skipIf(!has("java") || !has("javac"))("java accepts our trust store and rejects another (skipped without a JDK)", async () => {
  writeFileSync(
    at("Fetch.java"),
    `public class Fetch { public static void main(String[] urls) throws Exception {
       for (String url : urls) System.out.write(new java.net.URL(url).openStream().readAllBytes());
       System.out.flush();
     } }`,
  );
  // Java sends no server name for a host without a dot, but can read hosts from a file.
  writeFileSync(at("hosts"), "127.0.0.1 api.example.com\n");
  const options = (store: string) => [`-Djavax.net.ssl.trustStore=${at(store)}`, `-Djdk.net.hosts.file=${at("hosts")}`, at("Fetch.java")];
  const { stdout } = await run("java", [...options("authority.jks"), url("api.example.com"), url("127.0.0.1")]);
  expect(stdout).toBe("hello\nhello\n");
  writeFileSync(at("other.jks"), javaKeyStore([createAuthority().certificatePem]));
  await expect(run("java", [...options("other.jks"), url("api.example.com")])).rejects.toThrow(/SSLHandshake/);
});
