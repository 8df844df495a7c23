import { CaissonError } from "../../contract/error.ts";
import type { Denial } from "../egress/denial.ts";
import { lookupFailure } from "../egress/resolve.ts";
import type { Registry } from "./registry.ts";
import { portOf } from "./upstream-url.ts";

/**
 * What is told of an upstream that cannot be reached, or answers with an error of its own; null for errors that are not
 * its own.
 */
export function upstreamFailure({ name, upstream }: Pick<Registry, "name" | "upstream">, error: unknown): Denial | null {
  if (!(error instanceof CaissonError) || error.code !== "unavailable" || error.details?.offline === true) return null;
  const { cause, message } = error;
  const isLookup = cause instanceof Error && "syscall" in cause && cause.syscall === "getaddrinfo";
  const reason = isLookup ? lookupFailure(cause) : "unavailable";
  const asked = { host: upstream.hostname, port: portOf(upstream), via: "mirror", method: null, path: null } as const;
  return { reason, asked, text: `the ${name} registry is not available: ${message} (${reason})`, rule: `registry ${name}` };
}
