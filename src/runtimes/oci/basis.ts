import { basename } from "node:path";
import type { SnapshotId } from "../../contract/ids.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import type { Basis } from "./details.ts";
import { removeFiles, runInside } from "./launch/launcher.ts";
import type { RootBind } from "./layers/layers.ts";
import type { MountedLayer } from "./layers/mounted-layer.ts";
import { readSnapshot } from "./layers/snapshot-store.ts";
import type { OciContext } from "./oci-context.ts";
import { type HostTemplate, hostTemplate } from "./template/host-template.ts";
import { writeSkeleton } from "./template/skeleton.ts";
import { refusedPackageTools } from "./template/system-packages.ts";
import { createTemplateCache } from "./template/template-cache.ts";

type Skeleton = Pick<HostTemplate, "folders" | "links" | "files" | "copies">;

/**
 * Puts a config's template on disk and returns what it consists of. Throws `not_found` or `invalid` for a missing image
 * or snapshot, and `unavailable`.
 */
export async function findBasis(oci: OciContext, config: SandboxConfig, options: { signal?: AbortSignal | undefined }): Promise<Basis> {
  const { template } = config;
  switch (template.kind) {
    case "host":
      return reuseBasis(oci, config, () => hostBasis(oci, config));
    case "image":
      return imageBasis(oci, config, { reference: template.reference, signal: options.signal });
    case "snapshot":
      return snapshotBasis(oci, config, template.id);
  }
}

/** The entries that we add to every root: the guest's mount point, and `sudo`, which is on PATH if root is allowed. */
const ours = {
  folders: [
    { path: "/.caisson", mode: 0o755, owner: "root" as const },
    { path: "/.caisson/bin", mode: 0o755, owner: "root" as const },
  ],
  files: [{ path: "/.caisson/guest", mode: 0o755, content: "" }],
  links: [{ path: "/.caisson/bin/sudo", target: "../guest" }],
};

/**
 * How long a basis is reused: inspecting the machine's toolchains and comparing the files copied from /etc takes longer
 * than the start itself.
 */
const BASIS_FRESH_MS = 5_000;
const BASES_MAX = 64;

async function reuseBasis(oci: OciContext, config: SandboxConfig, make: () => Promise<Basis>): Promise<Basis> {
  const key = JSON.stringify([config.allowRoot, sharedFolders(config).map(({ path }) => path)]);
  const known = oci.bases.get(key);
  const now = performance.now();
  if (known !== undefined && now - known.atMs < BASIS_FRESH_MS) return known.basis;
  const basis = await make();
  if (oci.bases.size >= BASES_MAX) oci.bases.clear();
  oci.bases.set(key, { atMs: now, basis });
  return basis;
}

async function hostBasis(oci: OciContext, config: SandboxConfig): Promise<Basis> {
  const { home, path } = oci.options;
  const avoid = [oci.context.stateDir, ...sharedFolders(config).map(({ path }) => path)];
  const { rootless } = oci.identity();
  const template = await hostTemplate({ home, path, avoid, installsPackages: config.allowRoot && !rootless });
  const refused = config.allowRoot && rootless ? refusedPackageTools() : [];
  const dir = await skeleton(oci, {
    folders: [...template.folders, ...ours.folders],
    links: [...template.links, ...ours.links],
    files: [...template.files, ...ours.files, ...refused],
    copies: template.copies,
  });
  return {
    root: { layers: [{ dir, mapped: false }], binds: template.binds.map((bind) => hostBind(bind, config.allowRoot)) },
    workspaceLayers: [],
    homeLayers: [],
    hidden: [...template.hidden],
    env: { ...template.env, ...sudoPath(template.env.PATH, config.allowRoot) },
  };
}

function hostBind({ source, target, kind }: { source: string; target: string; kind: "folder" | "file" }, allowRoot: boolean): RootBind {
  const system = /^\/(?:usr|bin|sbin|lib\w*|var\/lib\/dpkg)$/.test(target);
  return { source, target, kind, writable: allowRoot && system, layers: [], ids: "sandbox" };
}

async function imageBasis(
  oci: OciContext,
  config: SandboxConfig,
  options: { reference: string; signal?: AbortSignal | undefined },
): Promise<Basis> {
  // Loaded on demand: most sandboxes have no image.
  const { imageRoot } = await import("./layers/image-root.ts");
  const image = await imageRoot(oci, options.reference, { owner: config.owner, signal: options.signal });
  const dir = await skeleton(oci, {
    folders: [...image.folders, ...ours.folders],
    links: ours.links,
    files: [...image.files, ...ours.files],
    copies: [],
  });
  return {
    root: { layers: [{ dir, mapped: false }, image.layer], binds: [] },
    workspaceLayers: [],
    homeLayers: [],
    hidden: [],
    env: { ...image.env, ...sudoPath(image.env.PATH, config.allowRoot) },
  };
}

/** Returns the snapshot's basis. Includes the frozen changes to its workspace if the folder is the same. */
async function snapshotBasis(oci: OciContext, config: SandboxConfig, id: SnapshotId): Promise<Basis> {
  const { basis, spec: before } = await readSnapshot(oci, id);
  const { workspace } = config;
  const same =
    workspace.kind === "folder" &&
    before.workspace.kind === "folder" &&
    workspace.access === "overlay" &&
    // A layer that outlives the sandbox is mounted over the folder itself, and is compared with it.
    workspace.layer === undefined &&
    workspace.path === before.workspace.path;
  const { PATH, ...env } = basis.env;
  const plain = PATH?.startsWith(SUDO_PREFIX) ? PATH.slice(SUDO_PREFIX.length) : PATH;
  return {
    ...basis,
    workspaceLayers: same ? basis.workspaceLayers : [],
    env: { ...env, ...(plain === undefined ? {} : { PATH: plain }), ...sudoPath(plain, config.allowRoot) },
  };
}

/** Returns the frozen layers of a config's snapshot, which its basis contains. */
export async function templateLayers(oci: OciContext, { template }: SandboxConfig): Promise<MountedLayer[]> {
  return template.kind === "snapshot" ? (await readSnapshot(oci, template.id)).layers : [];
}

/**
 * Makes the snapshot's folder the workspace unless another is requested: the snapshot's changes only make sense over
 * that folder.
 */
export async function withSnapshotWorkspace(oci: OciContext, config: SandboxConfig): Promise<SandboxConfig> {
  if (config.template.kind !== "snapshot" || config.workspace.kind !== "empty") return config;
  const { workspace } = (await readSnapshot(oci, config.template.id)).spec;
  if (workspace.kind !== "folder" || workspace.access !== "overlay") return config;
  // The snapshot has its own copy of what its sandbox wrote to a session, which still belongs to the session.
  const { layer: _, view: __, ...own } = workspace;
  return { ...config, workspace: own };
}

const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const SUDO_PREFIX = "/.caisson/bin:";

/** Puts our `sudo` first on PATH if root is allowed: the system's gains no privileges inside. */
function sudoPath(path: string | undefined, allowRoot: boolean): { PATH?: string } {
  return allowRoot ? { PATH: `${SUDO_PREFIX}${path ?? standardPath}` } : {};
}

/**
 * Writes a skeleton owned by the sandbox's root. Without root, only a user namespace can change the owner of its files.
 */
async function skeleton(oci: OciContext, template: Skeleton): Promise<string> {
  const identity = oci.identity();
  const { stateDir } = oci.context;
  if (!identity.rootless) return writeSkeleton({ template, stateDir, owners: { root: identity.root, user: identity.user } });
  const plain = await writeSkeleton({ template, stateDir });
  const cache = createTemplateCache({ stateDir, remove: (tree) => removeFiles(oci, [tree]) });
  const name = `rootless-${basename(plain)}`;
  const existing = await cache.use(name);
  if (existing !== null) return existing;
  const draft = await cache.draft();
  const users = [
    ...template.folders.filter(({ owner }) => owner === "user"),
    ...template.files.filter(({ path }) => path.startsWith("/home/")),
  ].map(({ path }) => draft + path);
  await runInside(oci, ["cp", "-a", "-T", plain, draft]);
  await runInside(oci, ["chown", "-hR", "0:0", draft]);
  if (users.length > 0) await runInside(oci, ["chown", "-h", "1000:1000", ...users]);
  return cache.publish(draft, name);
}
