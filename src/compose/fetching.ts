import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { createFetchPolicy, type FetchPolicy } from "../network/outbound/fetch-policy.ts";
import { trustedCertificates } from "../network/outbound/trusted-certificates.ts";

/** What the configuration says of what is fetched for owners. */
export function fetchPolicyOf({
  caFiles,
  privateFetchHosts,
}: {
  caFiles: readonly string[];
  privateFetchHosts: readonly string[];
}): FetchPolicy {
  return createFetchPolicy({ privateHosts: privateFetchHosts, extraCa: caFiles.map(readCertificates) });
}

function readCertificates(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CaissonError("invalid", `the certificates in ${file} cannot be read`, {
      cause,
      hint: "Look at network.caFiles of the configuration.",
    });
  }
}

/** All certificates that servers are known by, in a file for git; null where git's own will do. */
export async function caFileOf({ extraCa }: FetchPolicy, { stateDir }: { stateDir: string }): Promise<string | null> {
  if (extraCa.length === 0) return null;
  const text = trustedCertificates(extraCa).join("\n");
  const folder = join(stateDir, "mirrors");
  const file = join(folder, `ca-${createHash("sha256").update(text).digest("hex").slice(0, 24)}.pem`);
  if ((await stat(file).catch(() => null)) !== null) return file;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  await writeFile(fresh, text, { mode: 0o600 });
  await rename(fresh, file);
  return file;
}
