import { isIP } from "node:net";
import { CaissonError } from "../../contract/error.ts";
import type { SecretSpec } from "../../contract/network.ts";

/** In git's patterns a star is one label, in ours any number of them. */
const LABELS_BELOW_MAX = 4;
const HTTPS_PORT = 443;

/**
 * Variables with which git inside asks for the placeholders of these secrets by itself. What is printed to git comes
 * from the secret's own variable, so the placeholder is in no command line. Throws `invalid` for a user's name that
 * git's protocol cannot carry.
 */
export function gitCredentialEnv(
  specs: Readonly<Record<string, SecretSpec>>,
  placeholders: Readonly<Record<string, string>>,
): Record<string, string> {
  return gitConfigEnv(gitCredentialConfig(specs, placeholders));
}

/** Settings of git, as key and value, in the order in which git must see them. */
export function gitCredentialConfig(
  specs: Readonly<Record<string, SecretSpec>>,
  placeholders: Readonly<Record<string, string>>,
): (readonly [string, string])[] {
  const helpers = new Map<string, string[]>();
  for (const [name, spec] of Object.entries(specs)) {
    if (spec.git === undefined || !Object.hasOwn(placeholders, name)) continue;
    const helper = helperFor(name, spec.git.username);
    for (const url of urlsOf(spec)) helpers.set(url, [...(helpers.get(url) ?? []), helper]);
  }
  return [...helpers].flatMap(([url, all]) => [
    // An empty one forgets those that were set before, such as one that would store the placeholder.
    [`credential.${url}.helper`, ""] as const,
    ...all.map((helper) => [`credential.${url}.helper`, helper] as const),
    // One credential for all repositories of the host.
    [`credential.${url}.useHttpPath`, "false"] as const,
  ]);
}

/** Settings as the variables git reads them from. They take the place of all others that are given this way. */
export function gitConfigEnv(config: readonly (readonly [string, string])[]): Record<string, string> {
  if (config.length === 0) return {};
  const pairs = config.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(config.length), ...Object.fromEntries(pairs) };
}

/** A shell function, because git appends what it wants (`get`, `store`, `erase`) as an argument. */
function helperFor(name: string, username: string): string {
  if (/[\r\n\0]/.test(username)) throw new CaissonError("invalid", `git's user of the secret ${name} has a line break`);
  const quoted = `'${username.replaceAll("'", `'\\''`)}'`;
  return `!f() { test "$1" = get && test -n "$${name}" && printf 'username=%s\\npassword=%s\\n' ${quoted} "$${name}"; }; f`;
}

function urlsOf({ hosts, ports }: SecretSpec): string[] {
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
