import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import type { Basis, OciDetails } from "../details.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { diskParts, hasLayerDisk, liveDisk } from "./disk.ts";
import { frozenPart } from "./frozen-layers.ts";
import { LASTING_PREFIX, layerOf } from "./layer-of.ts";
import type { RootBind } from "./layers.ts";
import { isLiveName, liveDir } from "./live-tree.ts";
import type { MountedLayer } from "./mounted-layer.ts";

/**
 * The writable layers of a machine. A sandbox's own are in its folder; those of a session are in the session's layer
 * folder and outlive its sandboxes; with a disk limit, all are on the disk, below `disk/`.
 */
export interface Part {
  /** Its name in frozen layers. */
  name: string;
  upper: string;
  work: string;
}

export interface Parts {
  root: Part;
  /** Null if changes to the home folder are stored with the changes to the rest of the root. */
  home: Part | null;
  /** Null for a workspace without an overlay. */
  workspace: Part | null;
  /** For every writable bind, in the order of the basis. */
  binds: Part[];
}

/** Returns where the writable layers of a sandbox are. Relative paths are in its folder. */
export function partsOf(
  config: SandboxConfig,
  { basis, base, disk, rootKey }: Pick<OciDetails, "basis" | "base" | "disk" | "rootKey">,
): Parts {
  const layer = layerOf(config);
  const hasDisk = disk !== "none";
  const { workspace } = config;
  const writable = basis.root.binds.filter((bind) => bind.writable);
  const place = hasDisk ? (layer === undefined ? onDisk : onLayerDisk) : layer === undefined ? inSandbox : inLayer(layer);
  // Sandboxes of earlier versions have all but the workspace and the home folder to themselves.
  const placeOwn = rootKey !== null ? place : hasDisk ? onDisk : inSandbox;
  const hasHome = layer !== undefined || basis.homeLayers.length > 0 || base.length > 0;
  return {
    root: placeOwn(rootName(rootKey)),
    home: hasHome ? place("home") : null,
    workspace: workspace.kind === "folder" && workspace.access === "overlay" ? place("workspace") : null,
    binds: writable.map((bind, index) => (rootKey === null ? oldBind(index, hasDisk) : place(bindName(bind)))),
  };
}

/** Whether a writable layer is on a disk of limited size. */
export const isOnDisk = (upper: string) => upper.startsWith("disk/");
/** Where the launcher sees a writable layer on a disk that it only reads. */
export const liveUpper = (upper: string) => upper.replace(/^disk\//, "live/");

const rootName = (rootKey: string | null) => (rootKey === null ? "root" : `root-${rootKey}`);

type Place = (name: string) => Part;

const inSandbox: Place = (name) => {
  const prefix = name.startsWith("root") ? "" : `${name}-`;
  return { name, upper: `${prefix}upper`, work: `${prefix}work` };
};
const onDisk: Place = (name) => {
  const { upper, work } = inSandbox(name);
  return { name, upper: `disk/${upper}`, work: `disk/${work}` };
};
const inLayer =
  (layer: string): Place =>
  (name) => {
    const prefix = name === "workspace" ? "" : `${name}-`;
    const dir = liveDir(layer);
    return { name, upper: join(dir, `${prefix}upper`), work: join(dir, `${prefix}work`) };
  };
export const onLayerDisk: Place = (name) => {
  const prefix = name === "workspace" ? LASTING_PREFIX : `${LASTING_PREFIX}${name}-`;
  return { name, upper: `disk/${prefix}upper`, work: `disk/${prefix}work` };
};

const oldBindName = (index: number) => `bind-${index}`;

function oldBind(index: number, hasDisk: boolean): Part {
  const prefix = hasDisk ? "disk/" : "";
  return { name: oldBindName(index), upper: `${prefix}bind-upper-${index}`, work: `${prefix}bind-work-${index}` };
}

/** Identifies a bind by what it mounts where: its index may differ in the session's next sandbox. */
export function bindName({ source, target }: Pick<RootBind, "source" | "target">): string {
  return `bind-${digest(`${source}\0${target}`)}`;
}

/** Identifies what a root's changes belong to: agents with different images in one session have separate roots. */
export function rootKeyOf({ template }: Pick<SandboxConfig, "template">, basis: Basis): string {
  if (template.kind === "host") return "host";
  if (template.kind === "snapshot") return digest(template.id);
  return digest(basename(basis.root.layers.at(-1)?.dir ?? ""));
}

const digest = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 12);

/** Returns a basis with a machine's frozen layers above its other layers. */
export function withBase(oci: OciContext, { basis, base, rootKey }: Pick<OciDetails, "basis" | "base" | "rootKey">): Basis {
  if (base.length === 0) return basis;
  const of = (name: string) => frozenParts(oci, base, name);
  const writable = basis.root.binds.filter((bind) => bind.writable);
  const nameOf = (bind: RootBind) => (rootKey === null ? oldBindName(writable.indexOf(bind)) : bindName(bind));
  return {
    ...basis,
    root: {
      layers: [...of(rootName(rootKey)).map((dir) => ({ dir, mapped: false })), ...basis.root.layers],
      binds: basis.root.binds.map((bind) => ({ ...bind, layers: [...of(nameOf(bind)), ...bind.layers] })),
    },
    workspaceLayers: [...of("workspace"), ...basis.workspaceLayers],
    homeLayers: [...of("home"), ...basis.homeLayers],
  };
}

/** Returns the folders of a part in layers that change it, topmost first. */
export function frozenParts(oci: OciContext, layers: readonly MountedLayer[], name: string): string[] {
  return layers.map((layer) => frozenPart(oci, layer, name)).filter((dir) => existsSync(dir));
}

/** Whether a point is a whole copy of a workspace, which earlier versions made instead of points. */
export const isOldCopy = (point: string) => /^copy-[a-z0-9_-]+$/.test(point);

/** A folder with the writable layers of a session, or of a sandbox without one. */
export interface Machine {
  dir: string;
  parts: { name: string; upper: string }[];
  /** The record that makes a disk readable, if the parts are on one. */
  disk?: PlanRecord;
}

export function machineOfSandbox(dir: string, config: SandboxConfig, details: OciDetails): Machine {
  const layer = layerOf(config);
  if (layer !== undefined) return machineOfLayer(layer);
  const disk = sandboxDisk(dir, details);
  const { root, home, workspace, binds } = partsOf(config, details);
  const parts = [root, home, workspace, ...binds].flatMap((part) =>
    part === null ? [] : [{ name: part.name, upper: disk === null ? resolve(dir, part.upper) : liveUpper(part.upper) }],
  );
  if (disk !== null) return { dir, parts, disk };
  return { dir, parts: parts.filter(({ upper }) => existsSync(upper)) };
}

function sandboxDisk(dir: string, { disk, guest }: OciDetails): PlanRecord | null {
  if (disk === "none") return null;
  if (disk === "image") return liveDisk(dir);
  if (guest !== null) return ["disk-inside", guest.pid];
  throw new CaissonError("lost", "the sandbox's files were in memory, and are lost with its guest");
}

const lastingUpper = /^((?:root|bind)-[a-z0-9]+|home)-upper$/;

export function machineOfLayer(layer: string): Machine {
  if (hasLayerDisk(layer)) {
    const parts = diskParts(layer).map((name) => ({ name, upper: liveUpper(onLayerDisk(name).upper) }));
    return { dir: layer, parts, disk: liveDisk(layer) };
  }
  const dir = liveDir(layer);
  const names = ifErrnoSync(() => readdirSync(dir), UNREACHABLE, []);
  const parts = names.flatMap((name) => {
    const part = name === "upper" ? "workspace" : lastingUpper.exec(name)?.[1];
    return part === undefined ? [] : [{ name: part, upper: join(dir, name) }];
  });
  return { dir: layer, parts: parts.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** Returns all folders of a layer that sandboxes wrote. */
export function lastingFolders(layer: string): string[] {
  const names = ifErrnoSync(() => readdirSync(layer), UNREACHABLE, []);
  return names
    .filter((name) => /^(?:upper|work)$|-(?:upper|work)$|^upper-|^old-|^copy-/.test(name) || isLiveName(name))
    .map((name) => join(layer, name));
}
