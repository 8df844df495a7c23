import { pathOf, type RouteName } from "../contract/api/paths.ts";
import type { Route } from "../contract/api/route.ts";

/** Answers to what the caller did wrong, by their names. */
export const refusals = {
  400: ["Invalid", "The request is malformed, or says something that cannot be."],
  401: ["Unauthenticated", "There is no token, or one that is not valid."],
  403: ["Denied", "The token's scope is not enough for it."],
  404: ["NotFound", "There is no such thing, or it belongs to another owner."],
  409: ["Conflict", "It cannot be done in the state that the thing is in."],
  413: ["TooLarge", "The body is larger than what the station takes."],
  429: ["Busy", "The caller makes too many requests, or has too much at once; see Retry-After."],
} as const;

/** Those that a route can answer with, as the OpenAPI document says it. */
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
