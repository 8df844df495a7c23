import type { House } from "../house.ts";

/** Trees an agent wrote are removed by the launcher: as their owner, and without ever following a link. */
export async function removeFiles(house: House, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  await house.launch({ what: "remove", plan: [...house.identity().plan, ...paths.map((path) => ["remove", path] as const)] });
}
