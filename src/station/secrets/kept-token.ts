import type { SecretConfig } from "../../contract/network/network.ts";
import { readSecretFile } from "../../network/secrets/read-secret-file.ts";
import { createSecretScope } from "../../network/secrets/secret-scope.ts";

const TOKEN_BYTES_MAX = 65_536;

/**
 * Returns the file with the value of a secret that the station itself can send; null for a secret from another source.
 */
export function fileOfSecret({ from }: SecretConfig): string | null {
  return typeof from === "object" && "file" in from ? from.file : null;
}

/**
 * Returns why a secret must not authorize a request that the station itself sends, or null if it may. `allowClear`
 * allows requests without TLS, if the sender ensures that they stay in a private network.
 */
export function tokenRefusal(
  config: SecretConfig,
  { method, url }: { method: string; url: URL },
  options: { allowClear: boolean },
): string | null {
  const scope = createSecretScope(config);
  if (scope.header !== null && scope.header !== "authorization") return "it is for another header";
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const head = { method, target: `${url.pathname}${url.search}`, version: "1.1" as const, headers: [] };
  return scope.refusal(head, { host: url.hostname, port, tls: url.protocol === "https:" || options.allowClear });
}

export async function readToken(file: string): Promise<string> {
  const { text } = await readSecretFile(file, { bytesMax: TOKEN_BYTES_MAX });
  return text.replace(/\r?\n$/, "");
}
