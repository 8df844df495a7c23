import { join, resolve } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SnapshotId } from "../../../contract/ids.ts";
import { createDiskShares } from "../../../sandbox/disk-shares.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import type { Basis, OciDetails } from "../details.ts";
import { whileFrozen } from "../freeze.ts";
import { removeFiles, runInside } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { homeFolders } from "./home.ts";
import { workspaceFolders } from "./layers.ts";
import { makeSnapshotDraft, newSnapshotId, publishSnapshot, snapshotDir } from "./snapshot-store.ts";

/** Copying a large tree takes long on a file system without reflinks. */
const COPY_TIMEOUT_MS = 30 * 60_000;

export interface SnapshotRequest {
  record: SandboxRecord;
  details: OciDetails;
  name?: string | undefined;
  /** Whether the snapshot is for a fork. */
  hidden: boolean;
}

/** Copies the upper layers while the sandbox is frozen. Throws `unsupported`, `no_space`, `busy`. */
export async function takeSnapshot(oci: OciContext, request: SnapshotRequest): Promise<SnapshotId> {
  const { record, details } = request;
  refuse(record, details);
  const id = newSnapshotId();
  const draft = await makeSnapshotDraft(oci, id);
  try {
    const copies = layerCopies(record, details);
    await whileFrozen(oci, record.id, async () => {
      for (const { from, to } of copies)
        await copyTree(oci, { from: resolve(oci.store.dir(record.id), from), to: join(draft, to), owner: record.spec.owner });
    });
    const bytes = await measure(
      oci,
      copies.map(({ to }) => join(draft, to)),
    );
    const basis = basisOver(details.basis, copies, snapshotDir(oci, id));
    await publishSnapshot(oci, draft, {
      id,
      name: request.name ?? null,
      sandbox: record.id,
      createdAt: new Date().toISOString(),
      bytes,
      basis,
      spec: record.spec,
      hiddenFor: request.hidden ? oci.store.thisProcess() : null,
    });
    return id;
  } catch (error) {
    await removeFiles(oci, [draft]);
    throw error;
  }
}

function refuse(record: SandboxRecord, details: OciDetails): void {
  if (details.disk !== "none") {
    throw new CaissonError("unsupported", `sandbox ${record.id} has a separate disk, whose files a snapshot cannot store`, {
      hint: "Create the sandbox without a disk limit.",
    });
  }
  const { workspace } = record.spec;
  if (workspace.kind === "folder" && workspace.access === "rw") {
    throw new CaissonError("unsupported", `the workspace of sandbox ${record.id} is a host folder, which a snapshot cannot freeze`, {
      hint: "Use an overlay workspace (`:overlay`), which keeps all changes in the sandbox.",
    });
  }
}

interface LayerCopy {
  kind: "root" | "workspace" | "home" | "bind";
  bind: number;
  from: string;
  to: string;
}

function layerCopies(record: SandboxRecord, details: OciDetails): LayerCopy[] {
  const copies: LayerCopy[] = [{ kind: "root", bind: -1, from: "upper", to: "root" }];
  const { workspace } = record.spec;
  if (workspace.kind === "folder" && workspace.access === "overlay") {
    copies.push({ kind: "workspace", bind: -1, from: workspaceFolders(workspace, { disk: false }).upper, to: "workspace" });
  }
  const home = homeFolders(record.spec, { disk: false, basis: details.basis });
  if (home !== null) copies.push({ kind: "home", bind: -1, from: home.upper, to: "home" });
  for (const [index] of details.basis.root.binds.filter(({ writable }) => writable).entries()) {
    copies.push({ kind: "bind", bind: index, from: `bind-upper-${index}`, to: `bind-${index}` });
  }
  return copies;
}

function basisOver(basis: Basis, copies: readonly LayerCopy[], dir: string): Basis {
  const of = (kind: LayerCopy["kind"], bind = -1) =>
    copies.filter((copy) => copy.kind === kind && copy.bind === bind).map(({ to }) => join(dir, to));
  const writable = basis.root.binds.filter((bind) => bind.writable);
  return {
    ...basis,
    root: {
      layers: [...of("root").map((dir) => ({ dir, mapped: false })), ...basis.root.layers],
      binds: basis.root.binds.map((bind) => ({ ...bind, layers: [...of("bind", writable.indexOf(bind)), ...bind.layers] })),
    },
    workspaceLayers: [...of("workspace"), ...basis.workspaceLayers],
    homeLayers: [...of("home"), ...basis.homeLayers],
  };
}

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
