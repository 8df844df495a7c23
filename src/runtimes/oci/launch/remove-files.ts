import type { OciContext } from "../oci-context.ts";

/** Trees an agent wrote are removed by the launcher: as their owner, and without ever following a link. */
export async function removeFiles(oci: OciContext, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  await oci.launch({ what: "remove", plan: [...oci.identity().plan, ...paths.map((path) => ["remove", path] as const)] });
}
