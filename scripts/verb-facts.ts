import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { declaredVerbs } from "../src/verbs/declared-verbs.ts";
import { routes } from "../src/verbs/routes.ts";
import type { VerbDeclaration, VerbFacts } from "../src/verbs/verb.ts";

/** Returns the part of a declaration for callers that load no schemas: browsers, and commands that must start quickly. */
function factsOf(group: string, name: string, declared: VerbDeclaration & { byHand?: true }): VerbFacts {
  const { path, route, owned, kind, byHand, takes, lead, key, by, signal, owner, apart } = declared;
  const facts = {
    route: path === undefined ? undefined : (route ?? `${group}.${name}`),
    ...{ owned, kind, byHand, takes: takesMore(takes, lead) ? true : undefined, lead, key, by, signal, owner, apart },
  };
  return JSON.parse(JSON.stringify(facts)) as VerbFacts;
}

/** Returns whether the input has a field besides the one that leads the arguments. */
function takesMore(takes: VerbDeclaration["takes"], lead: string | undefined): boolean {
  if (takes === undefined) return false;
  return !("shape" in takes) || Object.keys(takes.shape as object).some((field) => field !== lead);
}

export function declaredFacts(): { facts: Record<string, Record<string, VerbFacts>>; paths: Record<string, string> } {
  const facts = Object.entries(declaredVerbs).map(([group, verbs]) => [
    group,
    Object.fromEntries(Object.entries(verbs).map(([name, declared]) => [name, factsOf(group, name, declared as VerbDeclaration)])),
  ]);
  return { facts: Object.fromEntries(facts), paths: Object.fromEntries(Object.entries(routes).map(([name, { path }]) => [name, path])) };
}

function text(): string {
  const { facts, paths } = declaredFacts();
  return `// Generated from the declarations in this folder by \`node scripts/verb-facts.ts\`; do not edit.
import type { RouteName } from "./routes.ts";
import type { GroupName } from "./station.ts";
import type { Method, Path, VerbFacts } from "./verb.ts";

/** What derives a call, an owner check or a lazy proxy from a verb: its declaration without schemas and texts. */
export const verbFacts: Readonly<Record<GroupName, Readonly<Record<string, VerbFacts>>>> = ${JSON.stringify(facts)};

/** Every call of the HTTP API by its name, with its method and path. */
export const paths: Readonly<Record<RouteName, Path>> = ${JSON.stringify(paths)};

/** \`POST\` and \`/v1/runs/{run}/stop\` for \`runs.stop\`. */
export function pathOf(name: RouteName): { method: Method; path: string } {
  const [method, path] = paths[name].split(" ") as [Method, string];
  return { method, path };
}
`;
}

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, "..");
  const file = join(root, "src", "verbs", "verb-facts.ts");
  writeFileSync(file, text());
  execFileSync(join(root, "node_modules", ".bin", "biome"), ["check", "--write", file], { stdio: "inherit" });
}
