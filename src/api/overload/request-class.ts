import type { RouteName } from "../../verbs/routes.ts";
import { paths } from "../../verbs/verb-facts.ts";

/** In the order in which an overloaded station serves requests. It refuses the last class first. */
export const requestClasses = ["vital", "control", "work", "list"] as const;
export type RequestClass = (typeof requestClasses)[number];

/** These report the station's state or end it, and cost next to nothing. */
const vital: readonly RouteName[] = ["station.status", "station.shutdown"];

/** These stop something, or answer something that waits. An overloaded station needs them most. */
const control: readonly RouteName[] = [
  "runs.stop",
  "runs.answer",
  "runs.pause",
  "runs.send",
  "workflows.cancel",
  "workflows.pause",
  "workflows.approve",
  "workflows.signal",
  "specs.cancel",
  "specs.decide",
  "ships.cancel",
  "ships.pause",
  "merges.cancel",
  "bests.cancel",
  "merges.pause",
  "bests.pause",
  "webhooks.pause",
  "sandboxes.pause",
  "sandboxes.remove",
  "processes.kill",
  "processes.signal",
  "tokens.revoke",
  "secrets.remove",
  "networks.revoke",
  "previews.close",
  "inside.beat",
];

/** These cost the most, and can be repeated. */
const lists: readonly RouteName[] = [
  ...(Object.keys(paths) as RouteName[]).filter((name) => name.endsWith(".list") && name !== "inbox.list"),
  "station.openapi",
  "ships.events",
  "webhooks.deliveries",
  "workflows.events",
  "specs.events",
  "specs.diff",
  "specs.export",
  "merges.events",
  "bests.events",
  "machine.doctor",
  "machine.stats",
  "machine.usage",
  "machine.find",
  "agents.trusted",
  "sandboxes.changedFiles",
  "networks.log",
  "runs.events",
  "runs.allEvents",
  "runs.check",
  "runs.queue",
  "inside.events",
  "inside.artifacts",
  "health.incidents",
  "guardian.log",
  "sessions.diff",
  "sessions.patch",
  "sessions.changes",
  "sessions.points",
  "sessions.files",
  "sessions.unapplied",
];

interface Pattern {
  /** The path segments; null matches anything. */
  parts: readonly (string | null)[];
  kind: RequestClass;
}

/** Patterns by method and number of segments. */
const patterns = new Map<string, Pattern[]>();
for (const [kind, names] of [
  ["vital", vital],
  ["control", control],
  ["list", lists],
] as const) {
  for (const name of names) {
    const [method = "", path = ""] = paths[name].split(" ");
    const parts = path.split("/").map((part) => (part.startsWith("{") ? null : part));
    const key = `${method} ${parts.length}`;
    patterns.set(key, [...(patterns.get(key) ?? []), { parts, kind }]);
  }
}

const observed = new Map<string, RequestClass>([
  ["/healthz", "vital"],
  ["/readyz", "vital"],
]);

/** Classifies a request by its method and target alone, before the rest of it is read. */
export function classOf(method: string, target: string): RequestClass {
  const end = target.indexOf("?");
  const path = end < 0 ? target : target.slice(0, end);
  const known = observed.get(path);
  if (known !== undefined) return known;
  // A page requests all of its files at once, before it has a token, and is useless if one is missing.
  if (method === "GET" && path.startsWith("/assets/")) return "control";
  const parts = path.split("/", 12);
  const match = patterns.get(`${method} ${parts.length}`)?.find((pattern) => matches(pattern.parts, parts));
  return match?.kind ?? "work";
}

function matches(pattern: Pattern["parts"], parts: readonly string[]): boolean {
  return pattern.every((part, at) => part === null || part === parts[at]);
}
