import { lstatSync, readdirSync, statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxConfig, WorkspaceMount } from "../../../contract/sandbox/sandbox.ts";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { insideTarget } from "../../../sandbox/inside-folder.ts";
import { pathBelow, realFolder, sharedFolders } from "../../../sandbox/shared-folders.ts";
import type { StateView } from "../../../sandbox/state-places.ts";
import { type Identity, mapRecords } from "../identity/identity.ts";
import { rangeStartOf, SANDBOX_IDS, workspaceMap } from "../identity/sub-ids.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { coverRecords, maskRecords } from "./cover-state.ts";
import { isOnDisk, liveUpper, type Part, type Parts } from "./parts.ts";

/**
 * A lower layer of a sandbox's root. `mapped` means that its files have the host's ids on disk, which are mapped to the
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
  /** Whether root may install into the folder. Changes go to the sandbox's own layer. */
  writable: boolean;
  /** Frozen layers over a writable folder, topmost first. */
  layers: string[];
  /** For `repository` and `mount`, files of the folder's owner belong to the sandbox's user inside. */
  ids: "sandbox" | "repository" | "mount";
}

/** What a sandbox's root consists of, topmost layer first. */
export interface RootPlan {
  layers: RootLayer[];
  binds: RootBind[];
}

/** Overlay mounts support more, but the kernel limits their options to one page of text. */
const LAYERS_MAX = 64;

/**
 * Returns records for a layer that was written with one id range, for a sandbox that may have another. The layer's top
 * folder shows its range: code inside cannot give that folder to an id beyond the range.
 */
export function storedLayer(name: string, layer: StoredLayer, { rootless, stored, root }: Identity): PlanRecord[] {
  const { dir, firstId = null } = typeof layer === "string" ? { dir: layer } : layer;
  const start = rootless ? root.uid : (firstId ?? rangeStartOf(lstatSync(dir).uid, stored.uid));
  if (start === root.uid) return [["layer", name, dir, "ro", "-"]];
  const line = { inside: start, outside: root.uid, count: SANDBOX_IDS };
  return [...mapRecords(`from-${start}`, [line], [line]), ["layer", name, dir, "ro", `from-${start}`]];
}

/** A layer's folder. On a disk, which the host does not mount, its range is given. */
export type StoredLayer = string | { dir: string; firstId: number | null };

/** A writable layer in a plan: where it is, the records that prepare it, and the layers between it and the others. */
export interface PlacedLayer {
  upper: string;
  work: string;
  records: PlanRecord[];
  names: string[];
}
export type PlaceLayer = (part: Part, options: { owner: number }) => PlacedLayer;

/** Creates the writable layer if it does not exist. */
export const placeLayer: PlaceLayer = ({ upper, work }, { owner }) => ({
  upper,
  work,
  records: [upper, work].map((path): PlanRecord => ["mkdir", path, "755", owner, owner]),
  names: [],
});

/** Shows a writable layer without writing to it: it becomes a lower layer, and the new upper one is thrown away. */
export const placeView =
  (dir: string): PlaceLayer =>
  ({ name, upper }, { owner }) => {
    const scratch = [`disk/${name}-upper`, `disk/${name}-work`] as const;
    return {
      upper: scratch[0],
      work: scratch[1],
      records: [
        ...scratch.map((at): PlanRecord => ["mkdir", at, "755", owner, owner]),
        ["layer", `top-${name}`, isOnDisk(upper) ? liveUpper(upper) : resolve(dir, upper), "ro", "-"],
      ],
      names: [`top-${name}`],
    };
  };

/**
 * Returns records that build a sandbox's root. Writable layers are in its folder, or on its own disk if that is
 * limited.
 */
export function rootRecords(
  root: RootPlan,
  options: {
    guestPath: string;
    insideFolder: string;
    parts: Pick<Parts, "root" | "binds">;
    place: PlaceLayer;
    state: StateView;
    identity: Identity;
    /** Records that mount a home folder over the root's. */
    home: readonly PlanRecord[];
  },
): PlanRecord[] {
  if (root.layers.length > LAYERS_MAX) {
    throw new CaissonError("unsupported", `a sandbox cannot have more than ${LAYERS_MAX} layers`, {
      hint: "Create a new sandbox and copy the files into it.",
    });
  }
  const { state, parts, place } = options;
  const overlays = root.binds.filter(({ writable }) => writable);
  const masks = root.layers.map(({ dir }, index) => maskRecords({ state, folder: dir, layer: String(index) }));
  const names = root.layers.flatMap((_, index) => [...(masks[index]?.names ?? []), String(index)]);
  const top = place(parts.root, { owner: 0 });
  return [
    ...top.records,
    ...root.layers.flatMap(({ dir, mapped }, index): PlanRecord[] =>
      mapped ? [["layer", String(index), dir, "ro", "sandbox"]] : storedLayer(String(index), dir, options.identity),
    ),
    ...masks.flatMap(({ records }) => records),
    ["overlay", [...top.names, ...names].join(":"), top.upper, top.work, "/"],
    // What the template puts into it is mounted on top later.
    ...options.home,
    ...overlays.flatMap(({ source, target, layers, ids }, index): PlanRecord[] => {
      const mask = maskRecords({ state, folder: source, layer: `bind-${index}` });
      const owned = ids !== "sandbox";
      const map = owned ? `bind-${index}` : "sandbox";
      const part = parts.binds[index];
      if (part === undefined) throw new CaissonError("internal", `the bind at ${target} has no writable layer`);
      const own = place(part, { owner: owned ? 1000 : 0 });
      return [
        ...(owned ? ownersMap(map, source, { identity: options.identity, readable: true }) : []),
        ...own.records,
        ["layer", `bind-${index}`, source, "ro", map],
        ...mask.records,
        ...layers.flatMap((dir, frozen) => storedLayer(`bind-${index}-${frozen}`, dir, options.identity)),
        [
          "overlay",
          [...own.names, ...layers.map((_, frozen) => `bind-${index}-${frozen}`), ...mask.names, `bind-${index}`].join(":"),
          own.upper,
          own.work,
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

/** Resolves an existing workspace folder to an absolute path without links. Throws `invalid`, `not_found`, `denied`. */
export function resolveWorkspace(workspace: WorkspaceMount, options: { state: () => StateView }): WorkspaceMount {
  if (workspace.kind === "empty") return workspace;
  const path = realFolder(workspace.path, { what: "the workspace" });
  options.state().refuse(path, { access: workspace.access });
  if (workspace.layer !== undefined) checkLayer(workspace.layer, workspace.access);
  return { ...workspace, path };
}

/** Throws `invalid` unless the folder exists and an overlay mount accepts its path. */
function checkLayer(layer: string, access: string): void {
  if (access !== "overlay") throw new CaissonError("invalid", "a layer requires an overlay workspace");
  if (!isAbsolute(layer) || /[\0,:\\]/.test(layer) || !statSync(layer, { throwIfNoEntry: false })?.isDirectory()) {
    throw new CaissonError("invalid", `the layer ${JSON.stringify(layer)} is not a usable folder`, {
      hint: "Use an absolute path without commas, colons or backslashes.",
    });
  }
}

/**
 * Returns records that mount a workspace at /workspace, over `layers` frozen earlier (topmost first). An empty
 * workspace is part of the root and needs no records.
 */
export function workspaceRecords(
  workspace: WorkspaceMount,
  options: { identity: Identity; part: Part | null; place: PlaceLayer; layers: readonly StoredLayer[]; state: StateView },
): PlanRecord[] {
  if (workspace.kind === "empty") return [];
  const { path, access } = workspace;
  const { identity, state, part } = options;
  const maps = ownersMap("workspace", path, { identity, readable: access !== "rw" });
  if (access !== "overlay" || part === null) {
    const bind: PlanRecord = ["bind", path, "/workspace", access === "ro" ? "ro,rec" : "rec", "workspace"];
    return [...maps, bind, ...coverRecords({ state, folder: path, target: "/workspace" })];
  }
  const own = options.place(part, { owner: 1000 });
  const mask = maskRecords({ state, folder: path, layer: "workspace" });
  const names = [...own.names, ...options.layers.map((_, index) => `frozen-${index}`), ...mask.names, "workspace"];
  return [
    ...maps,
    ...own.records,
    ...options.layers.flatMap((dir, index) => storedLayer(`frozen-${index}`, dir, identity)),
    ["layer", "workspace", path, "ro", "workspace"],
    ...mask.records,
    ["overlay", names.join(":"), own.upper, own.work, "/workspace"],
  ];
}

/** Returns records of a map that gives files of a folder's owner to the sandbox's user. */
export function ownersMap(name: string, folder: string, { identity, readable }: { identity: Identity; readable: boolean }): PlanRecord[] {
  if (identity.rootless) return [];
  const { uid, gid } = lstatSync(folder);
  const { root, stored } = identity;
  const mapOf = (id: "uid" | "gid", owner: number) => workspaceMap({ owner, start: root[id], stored: stored[id], readable });
  return mapRecords(name, mapOf("uid", uid), mapOf("gid", gid));
}

/**
 * Returns records that pin the read-only paths of a read-write folder. The OCI runtime makes them read-only, but a
 * folder above one could be moved away and replaced. Missing paths are left to the OCI runtime, which ignores them.
 */
export function holdRecords(config: Pick<SandboxConfig, "workspace" | "mounts" | "readOnlyPaths">): PlanRecord[] {
  const written = sharedFolders(config).filter(({ access }) => access === "rw");
  return written.flatMap((folder) =>
    config.readOnlyPaths.flatMap((path): PlanRecord[] => {
      const below = pathBelow(path, folder.target);
      return below === null || lstatOrNull(join(folder.path, below)) === null ? [] : [["hold", folder.target, below]];
    }),
  );
}

/** Marks the layers of the root with which a sandbox waited. */
export const WAITED_PREFIX = "waited-";

const layerName = /^(?:waited-)?(?:upper|work|(?:workspace|home|bind-[a-z0-9]+)-(?:upper|work)|bind-(?:upper|work)-\d+)$/;

/** Returns the folders that the launcher created in a sandbox's folder, which belong to ids of the sandbox. */
export function layerFolders(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => layerName.test(name))
    .map((name) => join(folder, name));
}

function namesIn(folder: string): string[] {
  return ifErrnoSync(() => readdirSync(folder), UNREACHABLE, []);
}
