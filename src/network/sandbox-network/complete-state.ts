import { existsSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { CaissonError } from "../../contract/error/error.ts";
import { ifErrnoSync, UNREACHABLE } from "../../lib/failures.ts";
import { insideFolderOf } from "../../sandbox/inside-folder.ts";
import { createAuthority } from "../authority/authority.ts";
import type { NetworkHost } from "../network-host.ts";
import { insideFiles } from "../sandbox-setup/inside-files.ts";
import type { NetworkState } from "./network-state.ts";
import { secretsOf } from "./secrets-of.ts";

/** Where operating systems store the authorities that they trust. */
const systemBundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/**
 * Adds everything that serving a state needs: placeholders for its secrets, and the sandbox's own authority. Throws
 * `invalid` for a secret that is not available.
 */
export async function completeState(state: NetworkState, host: NetworkHost): Promise<NetworkState> {
  const book = secretsOf(state, host);
  try {
    await book.check();
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    const hint = "Set a variable of its name, or another source with from=: env:NAME, file:PATH or command:PROGRAM.";
    throw new CaissonError(error.code, error.message, { hint, cause: error });
  }
  return withAuthority({ ...state, placeholders: book.placeholders });
}

export function withAuthority(state: NetworkState): NetworkState {
  return { ...state, authority: state.authority ?? createAuthority().toStored() };
}

/** Writes the files that programs inside need to trust the sandbox's authority. */
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
    const text = ifErrnoSync(() => readFileSync(path, "utf8"), UNREACHABLE, null);
    if (text !== null) return text;
  }
  return `${rootCertificates.join("\n")}\n`;
}
