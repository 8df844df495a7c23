import { lstatSync, renameSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { SandboxSpec } from "../../../contract/sandbox.ts";
import type { Basis } from "./details.ts";
import type { House } from "./house.ts";
import type { RootBind } from "./layers.ts";
import { readSnapshot } from "./snapshot-store.ts";
import { sandboxUser } from "./template/etc-files.ts";
import { type HostTemplate, hostTemplate } from "./template/host-template.ts";
import { writeSkeleton } from "./template/skeleton.ts";

type Skeleton = Pick<HostTemplate, "folders" | "links" | "files" | "copies">;

/** Brings a spec's template to disk and says what it is made of. Throws `not_found` and `invalid` for images and snapshots that are not there, `unavailable`. */
export async function findBasis(house: House, spec: SandboxSpec, options: { signal?: AbortSignal | undefined }): Promise<Basis> {
  const { template } = spec;
  switch (template.kind) {
    case "host":
      return hostBasis(house, spec);
    case "image":
      return imageBasis(house, template.reference, options);
    case "snapshot":
      return (await readSnapshot(house, template.id)).basis;
  }
}

/** Our own few entries, in every root: the guest's mount point, and `sudo`, which is on PATH where root is allowed. */
const ours = {
  folders: [
    { path: "/.caisson", mode: 0o755, owner: "root" as const },
    { path: "/.caisson/bin", mode: 0o755, owner: "root" as const },
  ],
  files: [{ path: "/.caisson/guest", mode: 0o755, content: "" }],
  links: [{ path: "/.caisson/bin/sudo", target: "../guest" }],
};

async function hostBasis(house: House, spec: SandboxSpec): Promise<Basis> {
  const { home, path } = house.options;
  const avoid = [house.context.stateDir, ...(spec.workspace.kind === "folder" ? [spec.workspace.path] : [])];
  const template = await hostTemplate({ home, path, avoid });
  const dir = await skeleton(house, {
    folders: [...template.folders, ...ours.folders],
    links: [...template.links, ...ours.links],
    files: [...template.files, ...ours.files],
    copies: template.copies,
  });
  return {
    root: { layers: [{ dir, mapped: false }], binds: template.binds.map((bind) => hostBind(bind, spec.allowRoot)) },
    workspaceLayers: [],
    hidden: [...template.hidden],
    env: { ...template.env, ...sudoPath(template.env.PATH, spec.allowRoot) },
  };
}

function hostBind({ source, target, kind }: { source: string; target: string; kind: "folder" | "file" }, allowRoot: boolean): RootBind {
  const system = /^\/(?:usr|bin|sbin|lib\w*)$/.test(target);
  return { source, target, kind, writable: allowRoot && system, layers: [] };
}

async function imageBasis(house: House, reference: string, options: { signal?: AbortSignal | undefined }): Promise<Basis> {
  const { imageRoot } = await import("./image-root.ts");
  const image = await imageRoot(house, reference, options);
  const folder = (path: string, owner: "root" | "user", mode = 0o755) => ({ path, owner, mode });
  const own = [
    ...["/dev", "/proc", "/sys"].map((path) => folder(path, "root")),
    folder("/tmp", "root", 0o1777),
    folder("/workspace", "user"),
    folder("/home", "root"),
    folder(sandboxUser.home, "user"),
  ];
  const dir = await skeleton(house, {
    folders: [...own, ...ours.folders, ...image.folders],
    links: ours.links,
    files: [...ours.files, ...image.files],
    copies: [],
  });
  return { root: { layers: [{ dir, mapped: false }, ...image.layers], binds: [] }, workspaceLayers: [], hidden: [], env: image.env };
}

const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** `sudo` of our own comes first where root is allowed: the system's gains nothing inside. */
export function sudoPath(path: string | undefined, allowRoot: boolean): { PATH?: string } {
  return allowRoot ? { PATH: `/.caisson/bin:${path ?? standardPath}` } : {};
}

/** A skeleton owned by the sandbox's root. Rootless, its files are given away inside a user namespace, since only there can they be. */
async function skeleton(house: House, template: Skeleton): Promise<string> {
  const identity = house.identity();
  const { stateDir } = house.context;
  if (!identity.rootless) return writeSkeleton({ template, stateDir, owners: { root: identity.root, user: identity.user } });
  const plain = await writeSkeleton({ template, stateDir });
  const target = join(dirname(plain), `rootless-${basename(plain)}`);
  if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) return target;
  const draft = join(dirname(plain), `.draft-${process.pid}-${Date.now().toString(36)}`);
  const inside = (...argv: string[]) =>
    house.launch({ what: "inside", plan: [...identity.plan, ...argv.map((argument) => ["argument", argument] as const)] });
  await inside("cp", "-a", "-T", plain, draft);
  await inside("chown", "-hR", "0:0", draft);
  const users = template.folders.filter(({ owner }) => owner === "user").map(({ path }) => draft + path);
  if (users.length > 0) await inside("chown", "-h", "1000:1000", ...users);
  try {
    renameSync(draft, target);
  } catch (error) {
    await house.launch({ what: "remove", plan: [...identity.plan, ["remove", draft]] });
    // Somebody else was faster.
    if (lstatSync(target, { throwIfNoEntry: false }) === undefined) throw error;
  }
  return target;
}
