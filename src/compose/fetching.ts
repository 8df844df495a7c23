import { createHash } from "node:crypto";
import { mkdir, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno } from "../lib/failures.ts";
import { createFetchPolicy, type FetchPolicy } from "../network/outbound/fetch-policy.ts";
import { readCertificates } from "../network/outbound/read-certificates.ts";
import { trustedCertificates } from "../network/outbound/trusted-certificates.ts";

/** Returns the policy for fetching on behalf of owners, from the configuration. */
export function fetchPolicyOf({
  caFiles,
  privateFetchHosts,
}: {
  caFiles: readonly string[];
  privateFetchHosts: readonly string[];
}): FetchPolicy {
  return createFetchPolicy({ privateHosts: privateFetchHosts, extraCa: caFiles.map(readCertificates) });
}

/** Writes all trusted certificates to a file for git. Returns null if git's default is enough. */
export async function caFileOf({ extraCa }: FetchPolicy, { stateDir }: { stateDir: string }): Promise<string | null> {
  if (extraCa.length === 0) return null;
  const text = trustedCertificates(extraCa).join("\n");
  const folder = join(stateDir, "mirrors");
  const file = join(folder, `ca-${createHash("sha256").update(text).digest("hex").slice(0, 24)}.pem`);
  if ((await ifErrno(stat(file), ABSENT, null)) !== null) return file;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  await writeFile(fresh, text, { mode: 0o600 });
  await rename(fresh, file);
  return file;
}
