import { isIP } from "node:net";
import { CaissonError } from "../../contract/error/error.ts";
import type { SecretConfig } from "../../contract/network/network.ts";

/** In git's patterns, a star matches one label; in ours, any number of labels. */
const LABELS_BELOW_MAX = 4;
const HTTPS_PORT = 443;

/**
 * Returns variables that make git inside use the placeholders of these secrets. The helper prints the secret's own
 * variable, so no command line contains the placeholder. Throws `invalid` for a username that git's protocol cannot
 * carry.
 */
export function gitCredentialEnv(
  configs: Readonly<Record<string, SecretConfig>>,
  placeholders: Readonly<Record<string, string>>,
): Record<string, string> {
  return gitConfigEnv(gitCredentialConfig(configs, placeholders));
}

/** Returns settings of git as keys and values, in the order that git needs. */
export function gitCredentialConfig(
  configs: Readonly<Record<string, SecretConfig>>,
  placeholders: Readonly<Record<string, string>>,
): (readonly [string, string])[] {
  const helpers = new Map<string, string[]>();
  for (const [name, secretConfig] of Object.entries(configs)) {
    if (secretConfig.git === undefined || !Object.hasOwn(placeholders, name)) continue;
    const helper = helperFor(name, secretConfig.git.username);
    for (const url of urlsOf(secretConfig)) helpers.set(url, [...(helpers.get(url) ?? []), helper]);
  }
  return [...helpers].flatMap(([url, all]) => [
    // An empty helper disables the earlier ones, such as one that would store the placeholder.
    [`credential.${url}.helper`, ""] as const,
    ...all.map((helper) => [`credential.${url}.helper`, helper] as const),
    // One credential for all repositories of the host.
    [`credential.${url}.useHttpPath`, "false"] as const,
  ]);
}

/** Returns settings as the variables that git reads. They replace all others that are set in this way. */
export function gitConfigEnv(config: readonly (readonly [string, string])[]): Record<string, string> {
  if (config.length === 0) return {};
  const pairs = config.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(config.length), ...Object.fromEntries(pairs) };
}

/** A shell function, because git appends the operation (`get`, `store`, `erase`) as an argument. */
function helperFor(name: string, username: string): string {
  if (/[\r\n\0]/.test(username)) throw new CaissonError("invalid", `the git username of the secret ${name} contains a line break`);
  const quoted = `'${username.replaceAll("'", `'\\''`)}'`;
  return `!f() { test "$1" = get && test -n "$${name}" && printf 'username=%s\\npassword=%s\\n' ${quoted} "$${name}"; }; f`;
}

function urlsOf({ hosts, ports }: SecretConfig): string[] {
  return hosts.flatMap((host) =>
    ports.flatMap((port) => {
      const end = port === HTTPS_PORT ? "" : `:${port}`;
      return hostPatterns(host).map((pattern) => `https://${pattern}${end}`);
    }),
  );
}

function hostPatterns(host: string): string[] {
  if (isIP(host) === 6) return [`[${host}]`];
  if (host !== "*" && !host.startsWith("*.")) return [host];
  const below = host === "*" ? [] : [host.slice(2)];
  return Array.from({ length: LABELS_BELOW_MAX }, (_, more) => [...new Array<string>(more + 1).fill("*"), ...below].join("."));
}
