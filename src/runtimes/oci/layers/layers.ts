import { lstatSync, readdirSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { CaissonError } from "../../../contract/error.ts";
import type { SandboxSpec, WorkspaceMount } from "../../../contract/sandbox.ts";
import { lstatOrNull } from "../../../lib/lstat-or-null.ts";
import { insideTarget } from "../../../sandbox/inside-folder.ts";
import { pathBelow, realFolder, sharedFolders } from "../../../sandbox/shared-folders.ts";
import type { StateView } from "../../../sandbox/state-places.ts";
import { type Identity, mapRecords } from "../identity/identity.ts";
import { rangeStartOf, SANDBOX_IDS, workspaceMap } from "../identity/sub-ids.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { coverRecords, maskRecords } from "./cover-state.ts";

/**
 * One lower layer of a sandbox's root. `mapped`: its files have the host's ids on disk and are mapped into the
 * sandbox's.
 */
export interface RootLayer {
  dir: string;
  mapped: boolean;
}

export interface RootBind {
  source: string;
  target: string;
  kind: "folder" | "file";
  /** A folder whose changes land in the sandbox's own layer, for root to install into. */
  writable: boolean;
  /** Frozen layers over a writable one, upmost first. */
  layers: string[];
  /** Of a `repository` and a `mount`, what the folder's owner owns is the user's inside. */
  ids: "sandbox" | "repository" | "mount";
}

/** What a sandbox's root is made of, upmost layer first. */
export interface RootPlan {
  layers: RootLayer[];
  binds: RootBind[];
}

/** Overlay mounts take more, but the kernel's text of options is one page. */
const LAYERS_MAX = 64;

/**
 * A layer that was written with a range of ids, for a sandbox that may have another: its top folder says which. Nobody
 * inside can give that folder to an id beyond the range it was written with.
 */
export function storedLayer(name: string, dir: string, { rootless, stored, root }: Identity): PlanRecord[] {
  const start = rootless ? root.uid : rangeStartOf(lstatSync(dir).uid, stored.uid);
  if (start === root.uid) return [["layer", name, dir, "ro", "-"]];
  const line = { inside: start, outside: root.uid, count: SANDBOX_IDS };
  return [...mapRecords(`from-${start}`, [line], [line]), ["layer", name, dir, "ro", `from-${start}`]];
}

/** Records that make a sandbox's root. Writable layers lie in its folder, or on its own disk when that is limited. */
export function rootRecords(
  root: RootPlan,
  options: {
    guestPath: string;
    insideFolder: string;
    disk: boolean;
    state: StateView;
    identity: Identity;
    /** Records of a home folder that is over the root's. */
    home: readonly PlanRecord[];
  },
): PlanRecord[] {
  if (root.layers.length > LAYERS_MAX) {
    throw new CaissonError("unsupported", `a sandbox cannot have more than ${LAYERS_MAX} layers`, {
      hint: "Make a fresh sandbox and copy the files into it.",
    });
  }
  const at = (name: string) => (options.disk ? `disk/${name}` : name);
  const { state } = options;
  const overlays = root.binds.filter(({ writable }) => writable);
  const masks = root.layers.map(({ dir }, index) => maskRecords({ state, folder: dir, layer: String(index) }));
  const names = root.layers.flatMap((_, index) => [...(masks[index]?.names ?? []), String(index)]);
  return [
    ...["upper", "work"].map((name): PlanRecord => ["mkdir", at(name), "755", 0, 0]),
    ...root.layers.flatMap(({ dir, mapped }, index): PlanRecord[] =>
      mapped ? [["layer", String(index), dir, "ro", "sandbox"]] : storedLayer(String(index), dir, options.identity),
    ),
    ...masks.flatMap(({ records }) => records),
    ["overlay", names.join(":"), at("upper"), at("work"), "/"],
    // What the template has in it is mounted above.
    ...options.home,
    ...overlays.flatMap(({ source, target, layers, ids }, index): PlanRecord[] => {
      const mask = maskRecords({ state, folder: source, layer: `bind-${index}` });
      const owned = ids !== "sandbox";
      const map = owned ? `bind-${index}` : "sandbox";
      const owner = owned ? 1000 : 0;
      return [
        ...(owned ? ownersMap(map, source, { identity: options.identity, readable: true }) : []),
        ["mkdir", at(`bind-upper-${index}`), "755", owner, owner],
        ["mkdir", at(`bind-work-${index}`), "755", owner, owner],
        ["layer", `bind-${index}`, source, "ro", map],
        ...mask.records,
        ...layers.flatMap((dir, frozen) => storedLayer(`bind-${index}-${frozen}`, dir, options.identity)),
        [
          "overlay",
          [...layers.map((_, frozen) => `bind-${index}-${frozen}`), ...mask.names, `bind-${index}`].join(":"),
          at(`bind-upper-${index}`),
          at(`bind-work-${index}`),
          target,
        ],
      ];
    }),
    ...root.binds
      .filter(({ writable }) => !writable)
      .flatMap(({ source, target, kind }): PlanRecord[] => [
        ["bind", source, target, kind === "file" ? "ro,file" : "ro,rec", "sandbox"],
        ...(kind === "file" ? [] : coverRecords({ state, folder: source, target })),
      ]),
    ["bind", options.guestPath, "/.caisson/guest", "ro,file", "-"],
    ["bind", options.insideFolder, insideTarget, "ro", "-"],
  ];
}

/** A workspace folder that is there, as an absolute path without links. Throws `invalid`, `not_found`, `denied`. */
export function resolveWorkspace(workspace: WorkspaceMount, options: { state: () => StateView }): WorkspaceMount {
  if (workspace.kind === "empty") return workspace;
  const path = realFolder(workspace.path, { what: "the workspace" });
  options.state().refuse(path, { access: workspace.access });
  if (workspace.layer !== undefined) checkLayer(workspace.layer, workspace.access);
  return { ...workspace, path };
}

/** Throws `invalid`: the folder must be there, and its path must be one an overlay can be told. */
function checkLayer(layer: string, access: string): void {
  if (access !== "overlay") throw new CaissonError("invalid", "a layer goes with an overlaid workspace only");
  if (!isAbsolute(layer) || /[\0,:\\]/.test(layer) || !statSync(layer, { throwIfNoEntry: false })?.isDirectory()) {
    throw new CaissonError("invalid", `the layer ${JSON.stringify(layer)} is not a folder that can be used`, {
      hint: "Give an absolute path without commas, colons and backslashes.",
    });
  }
}

/**
 * Records that mount a workspace at /workspace, over `layers` frozen earlier (upmost first). An empty one is part of
 * the root and needs none.
 */
export function workspaceRecords(
  workspace: WorkspaceMount,
  options: { identity: Identity; disk: boolean; layers: readonly string[]; state: StateView },
): PlanRecord[] {
  if (workspace.kind === "empty") return [];
  const { path, access } = workspace;
  const { identity, state } = options;
  const maps = ownersMap("workspace", path, { identity, readable: access !== "rw" });
  if (access !== "overlay") {
    const bind: PlanRecord = ["bind", path, "/workspace", access === "ro" ? "ro,rec" : "rec", "workspace"];
    return [...maps, bind, ...coverRecords({ state, folder: path, target: "/workspace" })];
  }
  const { upper, work } = workspaceFolders(workspace, options);
  const mask = maskRecords({ state, folder: path, layer: "workspace" });
  const names = [...options.layers.map((_, index) => `frozen-${index}`), ...mask.names, "workspace"];
  return [
    ...maps,
    ["mkdir", upper, "755", 1000, 1000],
    ["mkdir", work, "755", 1000, 1000],
    ...options.layers.flatMap((dir, index) => storedLayer(`frozen-${index}`, dir, identity)),
    ["layer", "workspace", path, "ro", "workspace"],
    ...mask.records,
    ["overlay", names.join(":"), upper, work, "/workspace"],
  ];
}

/** Records of a map by which the files of a folder's owner are the user's inside. */
export function ownersMap(name: string, folder: string, { identity, readable }: { identity: Identity; readable: boolean }): PlanRecord[] {
  if (identity.rootless) return [];
  const { uid, gid } = lstatSync(folder);
  const { root, stored } = identity;
  const mapOf = (id: "uid" | "gid", owner: number) => workspaceMap({ owner, start: root[id], stored: stored[id], readable });
  return mapRecords(name, mapOf("uid", uid), mapOf("gid", gid));
}

/**
 * Records that keep the read-only paths of a folder given read-write where they are: the OCI runtime makes them
 * read-only, but a folder on the way could be moved away, and another put in its place. What is not there is left to
 * the OCI runtime, which passes over it.
 */
export function holdRecords(spec: Pick<SandboxSpec, "workspace" | "mounts" | "readOnlyPaths">): PlanRecord[] {
  const written = sharedFolders(spec).filter(({ access }) => access === "rw");
  return written.flatMap((folder) =>
    spec.readOnlyPaths.flatMap((path): PlanRecord[] => {
      const below = pathBelow(path, folder.target);
      return below === null || lstatOrNull(join(folder.path, below)) === null ? [] : [["hold", folder.target, below]];
    }),
  );
}

/**
 * Where the changes to an overlaid workspace are: on its disk where that is limited, else in the sandbox's own folder
 * or in the one the spec gives to outlive it.
 */
export function workspaceFolders(
  workspace: Extract<WorkspaceMount, { kind: "folder" }>,
  options: { disk: boolean },
): { upper: string; work: string } {
  if (workspace.layer !== undefined && !options.disk) return { upper: join(workspace.layer, "upper"), work: join(workspace.layer, "work") };
  const at = (name: string) => (options.disk ? `disk/${name}` : name);
  return { upper: at("workspace-upper"), work: at("workspace-work") };
}

/** Of a layer that outlives its sandboxes. */
export const lastingFolders = (layer: string) => workspaceFolders({ kind: "folder", path: "/", access: "overlay", layer }, { disk: false });

/** Of one that goes with its sandbox, in the sandbox's folder. */
export const passingFolders = workspaceFolders({ kind: "folder", path: "/", access: "overlay" }, { disk: false });

const layerName = /^(?:upper|work|(?:workspace|home)-(?:upper|work)|bind-(?:upper|work)-\d+)$/;

/** What is in a sandbox's folder that its launcher made, and that belongs to ids of the sandbox. */
export function layerFolders(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => layerName.test(name))
    .map((name) => join(folder, name));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Somebody else has removed it already.
    return [];
  }
}
