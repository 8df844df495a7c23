import { closeSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { parseImageReference } from "../../../contract/image/image-reference.ts";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { notAnImage } from "./image-store.ts";
import { resolveInRoot } from "./resolve-in-root.ts";

export type ImageSource =
  | { kind: "rootfs"; folder: string }
  | { kind: "layout"; folder: string; tag: string | null }
  | { kind: "archive"; path: string; tag: string | null }
  | { kind: "registry"; reference: string };

/**
 * Finds the image that a reference names. On disk, a tag may follow the last colon. Throws `not_found`, or `invalid`
 * with a hint that says what is accepted.
 */
export function imageSource(reference: string): ImageSource {
  const parsed = parseImageReference(reference);
  if (parsed === null) throw notAnImage(JSON.stringify(reference));
  if (parsed.kind === "registry") return parsed;
  const { place } = parsed;
  const onDisk = sourceOnDisk(place, null);
  if (onDisk !== null) return onDisk;
  const colon = place.lastIndexOf(":");
  const tagged = colon > 0 && !place.slice(colon).includes("/") ? sourceOnDisk(place.slice(0, colon), place.slice(colon + 1)) : null;
  if (tagged !== null) return tagged;
  // docker-archive:PATH:NAME:TAG, where the name itself contains a colon.
  const first = place.indexOf(":");
  const named = first > 0 && first !== colon ? sourceOnDisk(place.slice(0, first), place.slice(first + 1)) : null;
  if (named !== null) return named;
  throw new CaissonError("not_found", `there is no image at ${place}`, { hint: notAnImage(place).hint ?? "" });
}

function sourceOnDisk(path: string, tag: string | null): ImageSource | null {
  const absolute = resolve(path);
  const stat = statOf(absolute);
  if (stat === undefined) return null;
  if (stat.isFile()) return { kind: "archive", path: absolute, tag };
  if (!stat.isDirectory()) throw notAnImage(path);
  const has = (name: string) => lstatOrNull(join(absolute, name)) !== null;
  if (has("oci-layout") || (has("manifest.json") && !has("usr"))) return { kind: "layout", folder: absolute, tag };
  if (tag !== null) return null;
  if (!["bin", "usr", "lib", "etc"].some(has)) throw notAnImage(path);
  return { kind: "rootfs", folder: absolute };
}

/** Throws `denied` for a path that we cannot access. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "EACCES") throw new CaissonError("denied", `the image ${path} is not readable`, { cause });
    return undefined;
  }
}

const machines: Record<string, { number: number; name: string }> = {
  x64: { number: 62, name: "x86_64" },
  arm64: { number: 183, name: "aarch64" },
};

/** Checks a program that every root file system has. Throws `unsupported` if it is for another processor. */
export function checkRootProcessor(root: string, arch: string): void {
  const wanted = machines[arch];
  if (wanted === undefined) return;
  for (const program of ["bin/sh", "usr/bin/env", "bin/busybox", "sbin/init"]) {
    const found = resolveInRoot(root, program.split("/"));
    const machine = found === null ? null : machineOf(root + found);
    if (machine === null) continue;
    if (machine === wanted.number) return;
    const other = Object.values(machines).find(({ number }) => number === machine)?.name ?? `machine ${machine}`;
    throw new CaissonError("unsupported", `${root} is for ${other}; this machine runs ${wanted.name}`, {
      hint: "Get the image for this processor.",
    });
  }
}

function machineOf(path: string): number | null {
  if (lstatOrNull(path)?.isFile() !== true) return null;
  const header = Buffer.alloc(20);
  const fd = ifErrnoSync(() => openSync(path, "r"), UNREACHABLE, null);
  if (fd === null) return null;
  try {
    readSync(fd, header, 0, header.length, 0);
  } finally {
    closeSync(fd);
  }
  return header.toString("latin1", 0, 4) === "\x7fELF" ? header.readUInt16LE(18) : null;
}
