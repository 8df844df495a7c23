import type { SecretSpec } from "../../contract/network.ts";
import { readSecretFile } from "../../network/secrets/read-secret-file.ts";
import { createSecretScope } from "../../network/secrets/secret-scope.ts";

const TOKEN_BYTES_MAX = 65_536;

/** The file with the value of a secret that the station can send itself; null for one from elsewhere. */
export function fileOfSecret({ from }: SecretSpec): string | null {
  return typeof from === "object" && "file" in from ? from.file : null;
}

/**
 * Why a secret does not go with a request of the station's own, as its authorization; null when it may. `allowClear`:
 * without TLS, too, where the sender sees to it that it stays in a private network.
 */
export function tokenRefusal(
  spec: SecretSpec,
  { method, url }: { method: string; url: URL },
  options: { allowClear: boolean },
): string | null {
  const scope = createSecretScope(spec);
  if (scope.header !== null && scope.header !== "authorization") return "it is for another header";
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const head = { method, target: `${url.pathname}${url.search}`, version: "1.1" as const, headers: [] };
  return scope.refusal(head, { host: url.hostname, port, tls: url.protocol === "https:" || options.allowClear });
}

export async function readToken(file: string): Promise<string> {
  const { text } = await readSecretFile(file, { bytesMax: TOKEN_BYTES_MAX });
  return text.replace(/\r?\n$/, "");
}
