import { parseImageReference } from "../image/image-reference.ts";
import type { NetworkPolicy, NetworkRule } from "../network/network.ts";
import { isolatingRuntimes, parseOciRuntime } from "./runtime-names.ts";

/**
 * Returns what a value names on the station's machine, each as a phrase; empty if it stays inside the sandbox. We parse
 * texts with the same functions as the code that acts on them, and judge the resulting kind: we list what is allowed,
 * not what is refused.
 */
export type Reach<Value> = (value: Value) => readonly string[];
/** A judge for every field of a request, so that a new field does not compile before it is judged. */
export type ReachOfFields<Request> = { [Field in keyof Required<Request>]: Reach<Exclude<Request[Field], undefined>> };
/** The same for each kind of a discriminated union. */
export type ReachByKind<Union extends { kind: string }> = {
  [Kind in Union["kind"]]: ReachOfFields<Omit<Extract<Union, { kind: Kind }>, "kind">>;
};

export const staysInside: Reach<unknown> = () => [];
export const folderReach = "a folder of the machine";

export const reachOfMounts: Reach<readonly unknown[]> = (mounts) => (mounts.length > 0 ? [folderReach] : []);

const isolating: ReadonlySet<string> = new Set(["auto", ...isolatingRuntimes, "fake"]);
export const reachOfRuntime: Reach<string> = (runtime) => {
  if (isolating.has(runtime)) return [];
  return [runtime === "host" ? "the runtime `host`, which isolates nothing" : "a runtime that is not known to isolate"];
};
export const reachOfProgram: Reach<string> = (program) => (parseOciRuntime(program)?.kind === "name" ? [] : ["a program of the machine"]);
/** Images built here have names like those in registries, and take precedence. */
export const reachOfImage: Reach<string> = (reference) =>
  parseImageReference(reference)?.kind === "registry" ? [] : ["an image that is not from a registry"];
export const reachOfSecrets: Reach<object> = (secrets) =>
  Object.keys(secrets).length > 0 ? ["secrets that come from the machine's variables, files or commands"] : [];

const rule: ReachOfFields<NetworkRule> = {
  host: staysInside,
  ports: staysInside,
  methods: staysInside,
  paths: staysInside,
  private: (isPrivate) => (isPrivate ? ["private addresses"] : []),
};
export const reachOfPolicy: Reach<NetworkPolicy> = (policy) =>
  policy.mode === "none" ? [] : [...new Set(policy.rules.flatMap((each) => collectReach(rule, each)))];

export function collectReach<Request extends object>(table: ReachOfFields<Request>, request: Request): string[] {
  const judges = table as Readonly<Record<string, Reach<unknown>>>;
  return Object.entries(request).flatMap(([field, value]) =>
    value === undefined ? [] : (judges[field]?.(value) ?? [`the field ${field}`]),
  );
}

export function collectReachByKind<Union extends { kind: string }>(tables: ReachByKind<Union>, request: Union): string[] {
  const { kind, ...fields } = request;
  const table = (tables as Readonly<Record<string, ReachOfFields<typeof fields>>>)[kind];
  return table === undefined ? [`the kind ${kind}`] : [...new Set(collectReach(table, fields))];
}
