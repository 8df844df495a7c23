import type { OciContext } from "../oci-context.ts";

/**
 * Runs a program as root of the sandboxes' user namespace (as root: as the host's), with the host's files, and gives the lines it wrote. Rejects when it fails.
 */
export function runInside(
  oci: OciContext,
  argv: readonly string[],
  options: { timeoutMs?: number; signal?: AbortSignal | undefined } = {},
): Promise<string[]> {
  const plan = [...oci.identity().plan, ...argv.map((argument) => ["argument", argument] as const)];
  return oci.launch({ what: "inside", plan, ...options });
}
