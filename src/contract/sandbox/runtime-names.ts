/**
 * The runtimes that a user can choose, strongest first, in the order in which `auto` tries them.
 * `src/compose/runtimes.ts` creates them; the command line, the console and the token checks read this list.
 */
export const builtInRuntimes = [
  { name: "oci", isolates: true },
  { name: "docker", isolates: true },
  { name: "host", isolates: false },
] as const;

export type BuiltInRuntime = (typeof builtInRuntimes)[number]["name"];

export const runtimeNames: readonly BuiltInRuntime[] = builtInRuntimes.map(({ name }) => name);
export const isolatingRuntimes: readonly BuiltInRuntime[] = builtInRuntimes.flatMap(({ name, isolates }) => (isolates ? [name] : []));

/**
 * Parses an OCI runtime: a name to look up on PATH, or the absolute path of a program. Returns null if it is neither.
 */
export function parseOciRuntime(text: string): { kind: "name"; name: string } | { kind: "file"; path: string } | null {
  if (text.startsWith("/")) return { kind: "file", path: text };
  return /^[A-Za-z0-9][\w.+-]*$/.test(text) ? { kind: "name", name: text } : null;
}
