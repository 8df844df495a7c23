import type { House } from "../house.ts";

/**
 * Runs a program as root of the sandboxes' user namespace (as root: as the host's), with the host's files, and gives the lines it wrote. Rejects when it fails.
 */
export function runInside(
  house: House,
  argv: readonly string[],
  options: { timeoutMs?: number; signal?: AbortSignal | undefined } = {},
): Promise<string[]> {
  const plan = [...house.identity().plan, ...argv.map((argument) => ["argument", argument] as const)];
  return house.launch({ what: "inside", plan, ...options });
}
