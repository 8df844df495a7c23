import { z } from "zod";
import { SecretName, SecretView, SetSecret } from "../contract/secret/secret-verbs.ts";
import { type VerbsOf, verb } from "./verb.ts";

/**
 * Secrets that a station stores. They are injected into requests to their hosts, and cannot be read back. `owner`
 * defaults to the user of this machine. An owner's secret takes precedence over a secret of the same name in the
 * configuration.
 */
export const secrets = {
  /**
   * Stores a value with its hosts, or replaces the secret of the same name. Sandboxes have the new value within a
   * minute. Throws `invalid` for a value that cannot be in a header, `busy` above the limit.
   */
  set: verb({
    path: "PUT /v1/secrets/{secret}",
    params: { secret: SecretName },
    takes: SetSecret,
    owner: true,
    apart: true,
    gives: SecretView,
    scope: "run",
    owned: "by hand",
    summary: "Store a secret, or replace it. Runs and sandboxes use it by name; its value cannot be read back.",
  }),
  /** Lists secrets by name, of one owner or of all. */
  list: verb({
    path: "GET /v1/secrets",
    owner: true,
    gives: z.array(SecretView),
    key: "secrets",
    scope: "read",
    owned: "by hand",
    summary: "List stored secrets with their hosts, without their values.",
  }),
  /** Removes a secret. Injection stops within a minute. Throws `not_found`. */
  remove: verb({
    path: "DELETE /v1/secrets/{secret}",
    params: { secret: SecretName },
    owner: true,
    scope: "run",
    owned: "by hand",
    summary: "Remove a secret. Injection stops within a minute.",
  }),
};

export type SecretVerbs = VerbsOf<typeof secrets>;
