import { createDiskShares } from "../../../sandbox/disk-shares.ts";
import { runInside } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";

/** Copying a large tree takes long on a file system without reflinks. */
const COPY_TIMEOUT_MS = 30 * 60_000;

/** Copies a tree as root of the user namespace, which owns the files. Links are copied as links. */
export async function copyTree(
  oci: OciContext,
  { from, to, owner }: { from: string; to: string; owner?: string | undefined },
): Promise<void> {
  const { stateDir, disk = createDiskShares({ stateDir }) } = oci.context;
  await disk.write({ what: "a copy of the sandbox's files", owner }, ({ signal }) =>
    runInside(oci, ["cp", "-a", "--reflink=auto", "-T", "--", from, to], { timeoutMs: COPY_TIMEOUT_MS, signal }),
  );
}

export async function measure(oci: OciContext, paths: readonly string[]): Promise<number> {
  const lines = await oci.launch({
    what: "measure",
    plan: [...oci.identity().plan, ...paths.map((path) => ["argument", path] as const)],
  });
  return Number(lines.map((line) => /^bytes (\d+)$/.exec(line)?.[1]).find((text) => text !== undefined) ?? 0);
}
