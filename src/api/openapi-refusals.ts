import type { Route } from "../verbs/route.ts";
import type { RouteName } from "../verbs/routes.ts";
import { pathOf } from "../verbs/verb-facts.ts";

/** The answers to mistakes of the caller, by name. */
export const refusals = {
  400: ["Invalid", "The request is malformed, or asks for something impossible."],
  401: ["Unauthenticated", "The token is missing or invalid."],
  403: ["Denied", "The token lacks the required scope."],
  404: ["NotFound", "It does not exist, or belongs to another owner."],
  409: ["Conflict", "The current state does not allow this."],
  413: ["TooLarge", "The body exceeds the station's limit."],
  429: ["Busy", "The caller sends too many requests, or holds too much at once; see Retry-After."],
} as const;

/** Returns the refusals that a route can answer with, for the OpenAPI document. */
export function refusalsOf(name: RouteName, { params, query, body }: Route): Record<string, unknown> {
  const isChange = pathOf(name).method !== "GET";
  const named = Object.keys(params ?? {}).length > 0;
  const may: Readonly<Record<keyof typeof refusals, boolean>> = {
    400: named || query !== undefined || body !== undefined,
    401: true,
    403: true,
    404: named,
    409: isChange,
    413: body !== undefined,
    429: true,
  };
  const statuses = (Object.keys(refusals) as unknown as (keyof typeof refusals)[]).filter((status) => may[status]);
  return Object.fromEntries(statuses.map((status) => [status, { $ref: `#/components/responses/${refusals[status][0]}` }]));
}
