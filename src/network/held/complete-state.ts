import { existsSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { CaissonError } from "../../contract/error.ts";
import { insideFolderOf } from "../../sandbox/inside-folder.ts";
import { createAuthority } from "../authority/authority.ts";
import { insideFiles } from "../inside/inside-files.ts";
import type { NetworkHost } from "../network-host.ts";
import type { NetworkState } from "./network-state.ts";
import { secretsOf } from "./secrets-of.ts";

/** Where systems keep the authorities they trust. */
const systemBundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/**
 * A state with all that serving it needs: placeholders for its secrets, and an authority of the sandbox's own. Throws
 * `invalid` for a secret that cannot be had.
 */
export async function completeState(state: NetworkState, host: NetworkHost): Promise<NetworkState> {
  const book = secretsOf(state, host);
  try {
    await book.check();
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    const hint = "It is taken from a variable of its name, or from what from= says: env:NAME, file:PATH, command:PROGRAM.";
    throw new CaissonError(error.code, error.message, { hint, cause: error });
  }
  return withAuthority({ ...state, placeholders: book.placeholders });
}

export function withAuthority(state: NetworkState): NetworkState {
  return { ...state, authority: state.authority ?? createAuthority().toStored() };
}

/** Puts what programs inside need to trust the sandbox's authority where they find it. */
export async function writeInside(sandboxFolder: string, state: NetworkState): Promise<void> {
  if (state.authority === null) return;
  const folder = insideFolderOf(sandboxFolder);
  const { certificatePem } = state.authority;
  for (const { name, data, mode } of insideFiles({ certificatePem, systemBundlePem: systemBundle() })) {
    const path = join(folder, name);
    if (existsSync(path)) continue;
    await writeFile(`${path}.tmp`, data, { mode });
    await rename(`${path}.tmp`, path);
  }
}

let bundle: string | undefined;
function systemBundle(): string {
  bundle ??= readBundle();
  return bundle;
}

function readBundle(): string {
  for (const path of systemBundles) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      // The next place, or what Node itself trusts.
    }
  }
  return `${rootCertificates.join("\n")}\n`;
}
