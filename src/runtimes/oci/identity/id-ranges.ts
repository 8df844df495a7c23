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
import { CaissonError } from "../../../contract/error.ts";
import type { SandboxSpec } from "../../../contract/sandbox.ts";
import { isErrno } from "../../../lib/is-errno.ts";
import type { OciDetails } from "../details.ts";
import type { HeldNamespaces } from "../launch/namespace-pool.ts";
import type { OciContext } from "../oci-context.ts";
import { type Identity, mapRecords, withRange } from "./identity.ts";
import { rangeStartOf, SANDBOX_IDS } from "./sub-ids.ts";

/** In a layer's folder: where the range begins that its files belong to. */
const LAYER_RANGE_NAME = "first-id";
/** In the name of a reservation of one who shares a range. */
const SHARED = "+";
/** How long a reservation may be older than what it is for. */
const HOLDER_LATE_MS = 60_000;

/** What of a runtime's parts the ranges of its sandboxes depend on. */
export type RangesOf = Pick<OciContext, "context" | "identity" | "launch" | "store">;

/** A sandbox of root's has the range that was chosen for it; an ordinary user's all have the user's one. */
export function identityOf(oci: RangesOf, { firstId }: Pick<OciDetails, "firstId">): Identity {
  return firstId === null ? oci.identity() : withRange(oci.identity(), firstId);
}

/** Where the range of a new sandbox begins: that of its layer, or one that no other sandbox has. */
export async function rangeFor(oci: RangesOf, { id, spec }: { id: string; spec: SandboxSpec }): Promise<number | null> {
  if (oci.identity().rootless) return null;
  const layer = layerOf(spec);
  if (layer === undefined) return reserveRange(oci, oci.store.dir(id));
  const known = layerRange(oci, layer);
  if (known !== null) return known;
  const start = await reserveRange(oci, layer);
  writeFileSync(join(layer, LAYER_RANGE_NAME), `${start}\n`);
  return start;
}

/** Null for a layer that nobody has written to. */
export function layerRange(oci: RangesOf, layer: string): number | null {
  const { stored } = oci.identity();
  const noted = Number(readOrEmpty(join(layer, LAYER_RANGE_NAME)).trim());
  if (Number.isInteger(noted) && noted > 0) return noted;
  const upper = lstatSync(join(layer, "upper"), { throwIfNoEntry: false });
  if (upper !== undefined) return rangeStartOf(upper.uid, stored.uid);
  return existsSync(join(layer, "disk.ext4")) ? stored.uid : null;
}

/** For a layer without files: whoever writes to it next brings ids of its own. */
export function releaseLayer(oci: RangesOf, layer: string): void {
  if (oci.identity().rootless) return;
  releaseRange(oci, layerRange(oci, layer), layer);
  rmSync(join(layer, LAYER_RANGE_NAME), { force: true });
}

/**
 * A layer that is going to hold a copy of another's files has their range, and keeps it for as long as it exists,
 * whichever of the two goes first. Its caller sees to it that the other one stays meanwhile.
 */
export function shareLayerRange(oci: RangesOf, from: string, to: string): void {
  const start = oci.identity().rootless ? null : layerRange(oci, from);
  if (start === null) return;
  if (start !== oci.identity().stored.uid) link(to, sharing(oci, start, to));
  writeFileSync(join(to, LAYER_RANGE_NAME), `${start}\n`);
}

/** Namespaces made beforehand have a range of their own, which is of no use for a layer that has another. */
export function suitableNamespaces(namespaces: HeldNamespaces | undefined, spec: SandboxSpec): HeldNamespaces | undefined {
  return layerOf(spec) === undefined ? namespaces : undefined;
}

/**
 * Reserves a range for as long as its holder, a path, exists. Where there are no further ranges, or owners of files in
 * the state folder cannot be mapped, it is the one that all share. Two state folders know nothing of each other: each
 * begins its search at random.
 */
export async function reserveRange(oci: RangesOf, holder: string): Promise<number> {
  const { stored, furtherRanges, rootless } = oci.identity();
  if (rootless || furtherRanges === 0 || !(await hasOwnRanges(oci))) return stored.uid;
  const from = randomInt(furtherRanges);
  for (let tried = 0; tried < furtherRanges; tried += 1) {
    const start = stored.uid + SANDBOX_IDS * (1 + ((from + tried) % furtherRanges));
    if (take(oci, start, holder)) return start;
  }
  // Thousands of sessions keep one each: most of them are at rest.
  return stored.uid + SANDBOX_IDS * (1 + from);
}

/** The range stays taken while another shares it: one of those is its holder then. */
export function releaseRange(oci: RangesOf, start: number | null, holder: string): void {
  if (start === null) return;
  rmSync(sharing(oci, start, holder), { force: true });
  if (holderOf(oci, start) !== holder) return;
  const [next] = livingSharers(oci, start, { except: holder });
  if (next === undefined) rmSync(reservation(oci, start), { force: true });
  else holdRange(oci, start, next);
}

/** Gives a range that is reserved to another holder. */
export function holdRange(oci: RangesOf, start: number, holder: string): void {
  if (holderOf(oci, start) === null) return;
  const fresh = `${reservation(oci, start)}.${process.pid}.tmp`;
  symlinkSync(holder, fresh);
  renameSync(fresh, reservation(oci, start));
}

function take(oci: RangesOf, start: number, holder: string): boolean {
  const path = reservation(oci, start);
  if (link(holder, path)) return isUnshared(oci, start, holder);
  // Its holder may be about to be made; one that is long gone has left it behind.
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || existsSync(path) || Date.now() - status.mtimeMs <= HOLDER_LATE_MS) return false;
  if (livingSharers(oci, start, { except: holder }).length > 0) return false;
  rmSync(path, { force: true });
  return link(holder, path) && isUnshared(oci, start, holder);
}

/** Whoever held it may be gone while a layer with a copy of its files is still there. */
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
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

function reservation(oci: RangesOf, start: number): string {
  return join(rangesFolder(oci), String(start));
}

/** Beside the reservation, one for each who shares the range. */
function sharing(oci: RangesOf, start: number, holder: string): string {
  return `${reservation(oci, start)}${SHARED}${createHash("sha256").update(holder).digest("hex").slice(0, 32)}`;
}

function rangesFolder(oci: RangesOf): string {
  return join(oci.context.stateDir, "oci", "ranges");
}

/** Tried once for each state folder: templates in it are of the first range, and are mapped to a sandbox's own. */
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

function layerOf({ workspace }: Pick<SandboxSpec, "workspace">): string | undefined {
  return workspace.kind === "folder" ? workspace.layer : undefined;
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
