import { createHash, randomInt } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { ABSENT, ifErrnoSync, isErrno, UNREACHABLE } from "../../../lib/failures.ts";
import type { OciDetails } from "../details.ts";
import type { HeldNamespaces } from "../launch/namespace-pool.ts";
import { layerOf } from "../layers/layer-of.ts";
import { liveDir } from "../layers/live-tree.ts";
import type { OciContext } from "../oci-context.ts";
import { type Identity, mapRecords, withRange } from "./identity.ts";
import { rangeStartOf, SANDBOX_IDS } from "./sub-ids.ts";

/** The file in a layer's folder that stores where the id range of its files begins. */
const LAYER_RANGE_NAME = "first-id";
/** Marks the reservation of a holder that shares a range. */
const SHARED = "+";
/** How much older than its holder a reservation may be. */
const HOLDER_LATE_MS = 60_000;

/** The parts of a runtime on which the ranges of its sandboxes depend. */
export type RangesOf = Pick<OciContext, "context" | "identity" | "launch" | "store">;

/**
 * Returns a sandbox's identity. Each sandbox of root has the range chosen for it; all sandboxes of an ordinary user
 * have the user's range.
 */
export function identityOf(oci: RangesOf, { firstId }: Pick<OciDetails, "firstId">): Identity {
  return firstId === null ? oci.identity() : withRange(oci.identity(), firstId);
}

/**
 * Returns where a new sandbox's range begins: its layer's range, or one that no other sandbox has. Null without root.
 */
export async function rangeFor(oci: RangesOf, { id, config }: { id: string; config: SandboxConfig }): Promise<number | null> {
  if (oci.identity().rootless) return null;
  const layer = layerOf(config);
  if (layer === undefined) return reserveRange(oci, oci.store.dir(id));
  const known = layerRange(oci, layer);
  if (known !== null) return known;
  const start = await reserveRange(oci, layer);
  writeFileSync(join(layer, LAYER_RANGE_NAME), `${start}\n`);
  return start;
}

/** Returns where a layer's range begins, or null for an unwritten layer. */
export function layerRange(oci: RangesOf, layer: string): number | null {
  const { stored } = oci.identity();
  const noted = Number(readOrEmpty(join(layer, LAYER_RANGE_NAME)).trim());
  if (Number.isInteger(noted) && noted > 0) return noted;
  const upper = lstatSync(join(liveDir(layer), "upper"), { throwIfNoEntry: false });
  if (upper !== undefined) return rangeStartOf(upper.uid, stored.uid);
  return existsSync(join(layer, "disk.ext4")) ? stored.uid : null;
}

/** Releases the range of a layer without files. The next sandbox that writes to the layer uses its own range. */
export function releaseLayer(oci: RangesOf, layer: string): void {
  if (oci.identity().rootless) return;
  releaseRange(oci, layerRange(oci, layer), layer);
  rmSync(join(layer, LAYER_RANGE_NAME), { force: true });
}

/**
 * Gives layer `to` the range of layer `from`, before the files of `from` are copied into it. `to` keeps the range as
 * long as it exists, even if `from` is removed first. The caller ensures that `from` exists until this returns.
 */
export function shareLayerRange(oci: RangesOf, from: string, to: string): void {
  const start = oci.identity().rootless ? null : layerRange(oci, from);
  if (start === null) return;
  if (start !== oci.identity().stored.uid) link(to, sharing(oci, start, to));
  writeFileSync(join(to, LAYER_RANGE_NAME), `${start}\n`);
}

/** Gives an unwritten layer the range of the sandbox that is about to write to it. A written layer keeps its own. */
export function handRangeTo(oci: RangesOf, layer: string, { start, holder }: { start: number | null; holder: string }): void {
  if (start === null || oci.identity().rootless || layerRange(oci, layer) !== null) return;
  if (holderOf(oci, start) === holder) holdRange(oci, start, layer);
  else if (start !== oci.identity().stored.uid) link(layer, sharing(oci, start, layer));
  writeFileSync(join(layer, LAYER_RANGE_NAME), `${start}\n`);
}

/**
 * Returns the prepared namespaces unless the config has a layer: they have their own range, and a layer needs
 * namespaces with the layer's range.
 */
export function suitableNamespaces(namespaces: HeldNamespaces | undefined, config: SandboxConfig): HeldNamespaces | undefined {
  return layerOf(config) === undefined ? namespaces : undefined;
}

/**
 * Reserves a range for as long as its holder, a path, exists. If there are no further ranges, or file owners in the
 * state folder cannot be mapped, returns the range that all sandboxes share. State folders do not know about each
 * other, so each search starts at a random range.
 */
export async function reserveRange(oci: RangesOf, holder: string): Promise<number> {
  const { stored, furtherRanges, rootless } = oci.identity();
  if (rootless || furtherRanges === 0 || !(await hasOwnRanges(oci))) return stored.uid;
  const from = randomInt(furtherRanges);
  for (let tried = 0; tried < furtherRanges; tried += 1) {
    const start = stored.uid + SANDBOX_IDS * (1 + ((from + tried) % furtherRanges));
    if (take(oci, start, holder)) return start;
  }
  // With thousands of sessions holding a range each, sharing one is fine: most of them are idle. The range stays
  // reserved as long as one of them exists.
  const shared = stored.uid + SANDBOX_IDS * (1 + from);
  link(holder, sharing(oci, shared, holder));
  return shared;
}

/** Releases a range. If others share it, it stays reserved, and one of them becomes its holder. */
export function releaseRange(oci: RangesOf, start: number | null, holder: string): void {
  if (start === null) return;
  rmSync(sharing(oci, start, holder), { force: true });
  if (holderOf(oci, start) !== holder) return;
  const [next] = livingSharers(oci, start, { except: holder });
  if (next === undefined) rmSync(reservation(oci, start), { force: true });
  else holdRange(oci, start, next);
}

/** Hands a reserved range to another holder. */
export function holdRange(oci: RangesOf, start: number, holder: string): void {
  if (holderOf(oci, start) === null) return;
  const fresh = `${reservation(oci, start)}.${process.pid}.tmp`;
  symlinkSync(holder, fresh);
  renameSync(fresh, reservation(oci, start));
}

function take(oci: RangesOf, start: number, holder: string): boolean {
  const path = reservation(oci, start);
  if (link(holder, path)) return isUnshared(oci, start, holder);
  // The holder may be about to be created. If it has been missing for long, the reservation is stale.
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || existsSync(path) || Date.now() - status.mtimeMs <= HOLDER_LATE_MS) return false;
  if (livingSharers(oci, start, { except: holder }).length > 0) return false;
  rmSync(path, { force: true });
  return link(holder, path) && isUnshared(oci, start, holder);
}

/**
 * Whether no other holder shares the range. A layer with a copy of the holder's files may outlive it, and then becomes
 * the holder.
 */
function isUnshared(oci: RangesOf, start: number, holder: string): boolean {
  const [sharer] = livingSharers(oci, start, { except: holder });
  if (sharer === undefined) return true;
  holdRange(oci, start, sharer);
  return false;
}

function livingSharers(oci: RangesOf, start: number, { except }: { except: string }): string[] {
  const folder = rangesFolder(oci);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith(`${start}${SHARED}`)) : [];
  const sharers: string[] = [];
  for (const name of names) {
    const target = targetOf(join(folder, name));
    if (target !== null && target !== except && existsSync(target)) sharers.push(target);
    else if (target !== null && !existsSync(target)) rmSync(join(folder, name), { force: true });
  }
  return sharers;
}

function link(target: string, path: string): boolean {
  try {
    symlinkSync(target, path);
    return true;
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    return false;
  }
}

function holderOf(oci: RangesOf, start: number): string | null {
  return targetOf(reservation(oci, start));
}

function targetOf(path: string): string | null {
  return ifErrnoSync(() => readlinkSync(path), [...ABSENT, "EINVAL"], null);
}

function reservation(oci: RangesOf, start: number): string {
  return join(rangesFolder(oci), String(start));
}

/** Returns the path of a sharer's reservation, next to that of the range. */
function sharing(oci: RangesOf, start: number, holder: string): string {
  return `${reservation(oci, start)}${SHARED}${createHash("sha256").update(holder).digest("hex").slice(0, 32)}`;
}

function rangesFolder(oci: RangesOf): string {
  return join(oci.context.stateDir, "oci", "ranges");
}

/**
 * Whether sandboxes can have separate ranges. Tried once per state folder: its templates have the first range and are
 * mapped to a sandbox's own.
 */
async function hasOwnRanges(oci: RangesOf): Promise<boolean> {
  const folder = rangesFolder(oci);
  const refused = join(oci.context.stateDir, "oci", "one-range");
  if (existsSync(folder)) return true;
  if (existsSync(refused)) return false;
  const { stored, plan } = oci.identity();
  const line = { inside: stored.uid, outside: stored.uid + SANDBOX_IDS, count: SANDBOX_IDS };
  mkdirSync(join(folder, ".."), { recursive: true, mode: 0o700 });
  try {
    const records = [...mapRecords("stored", [line], [line]), ["layer", "probe", oci.context.stateDir, "ro", "stored"] as const];
    await oci.launch({ what: "mappable", plan: [...plan, ...records] });
  } catch (error) {
    if (!(error instanceof CaissonError) || error.details?.step !== "idmap") throw error;
    writeFileSync(refused, "");
    return false;
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return true;
}

function readOrEmpty(file: string): string {
  return ifErrnoSync(() => readFileSync(file, "utf8"), UNREACHABLE, "");
}
