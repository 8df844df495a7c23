import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { ClientRequest } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { createAuthority } from "../network/authority/authority.ts";
import { leafCertificate, pemOf } from "../network/authority/certificate.ts";

/** Creates a certificate for 127.0.0.1 in temporary files, for one test file. */
export function useCertificate() {
  let folder = "";
  let ca = "";
  const files = () => ({ certPath: join(folder, "cert.pem"), keyPath: join(folder, "key.pem") });
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "caisson-test-tls-"));
    const authority = createAuthority();
    ca = authority.certificatePem;
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const issued = new X509Certificate(ca);
    const issuer = {
      key: createPrivateKey(authority.toStored().keyPem),
      certificate: issued.raw,
      validity: { from: new Date(issued.validFrom), to: new Date(issued.validTo) },
    };
    await writeFile(files().certPath, pemOf(leafCertificate({ host: "127.0.0.1", publicKey, issuer, now: new Date() })));
    await writeFile(files().keyPath, privateKey.export({ type: "pkcs8", format: "pem" }));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const get = (url: string): ClientRequest => request(url, { ca, agent: false }).end();
  return { folder: () => folder, files, ca: () => ca, get };
}
