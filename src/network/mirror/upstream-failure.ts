import { CaissonError } from "../../contract/error/error.ts";
import type { Denial } from "../egress/denial.ts";
import { lookupFailure } from "../egress/resolve.ts";
import type { Registry } from "./registry.ts";
import { portOf } from "./upstream-url.ts";

/** Returns the denial to report for an upstream that is unreachable or answers with an error; null for other errors. */
export function upstreamFailure({ name, upstream }: Pick<Registry, "name" | "upstream">, error: unknown): Denial | null {
  if (!(error instanceof CaissonError) || error.code !== "unavailable" || error.details?.offline === true) return null;
  const { cause, message } = error;
  const isLookup = cause instanceof Error && "syscall" in cause && cause.syscall === "getaddrinfo";
  const reason = isLookup ? lookupFailure(cause) : "unavailable";
  const request = { host: upstream.hostname, port: portOf(upstream), via: "mirror", method: null, path: null } as const;
  return { reason, attempt: request, text: `the ${name} registry is not available: ${message} (${reason})`, rule: `registry ${name}` };
}
