import type { NetworkHost } from "../network-host.ts";
import { createSecretBook, type SecretBook } from "../secrets/secret-book.ts";
import type { NetworkState } from "./network-state.ts";

/** Creates the secret book of a state, with values from this process's environment. */
export function secretsOf(
  state: Pick<NetworkState, "secrets" | "placeholders" | "revoked">,
  host: NetworkHost,
  warn: (text: string) => void = () => {},
): SecretBook {
  const names = Object.entries(state.secrets).flatMap(([name, { from }]) =>
    from === "env" ? [name] : typeof from === "object" && "env" in from ? [from.env] : [],
  );
  return createSecretBook({
    configs: state.secrets,
    placeholders: state.placeholders,
    revoked: state.revoked,
    env: Object.fromEntries(names.map((name) => [name, host.variable(name)])),
    runCommand: host.runCommand,
    warn,
  });
}
