import { closeSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { CaissonError } from "../../../contract/error.ts";
import { lstatOrNull } from "../../../lib/lstat-or-null.ts";
import { notAnImage } from "./image-store.ts";
import { isRegistryReference } from "./registry.ts";
import { resolveInRoot } from "./resolve-in-root.ts";

export type ImageSource =
  | { kind: "rootfs"; folder: string }
  | { kind: "layout"; folder: string; tag: string | null }
  | { kind: "archive"; path: string; tag: string | null }
  | { kind: "registry"; reference: string };

/**
 * Tells what a reference means: what begins with `/`, `./` or `../` lies on disk, perhaps with a tag after the last
 * colon, and `oci:`, `oci-archive:`, `docker-archive:` and `docker://` say it outright. Anything else is a name in a
 * registry, whatever lies in the current folder: a clone must not decide what `debian:12` means. Throws `not_found`,
 * `invalid` with a hint of what is accepted.
 */
export function imageSource(reference: string): ImageSource {
  if (reference === "" || reference.includes("\0")) throw notAnImage(JSON.stringify(reference));
  const [, scheme, rest] = /^(oci|oci-archive|docker-archive|docker):(.+)$/s.exec(reference) ?? [];
  if (scheme === "docker" && rest?.startsWith("//")) return registry(rest.slice(2), reference);
  const text = scheme === undefined || rest === undefined || scheme === "docker" ? reference : rest;
  if (text === reference && !/^[./]/.test(text)) return registry(text, reference);
  const onDisk = sourceOnDisk(text, null);
  if (onDisk !== null) return onDisk;
  const colon = text.lastIndexOf(":");
  const tagged = colon > 0 && !text.slice(colon).includes("/") ? sourceOnDisk(text.slice(0, colon), text.slice(colon + 1)) : null;
  if (tagged !== null) return tagged;
  // docker-archive:PATH:NAME:TAG, where the name itself has a colon.
  const first = text.indexOf(":");
  const named = first > 0 && first !== colon ? sourceOnDisk(text.slice(0, first), text.slice(first + 1)) : null;
  if (named !== null) return named;
  throw new CaissonError("not_found", `there is no image at ${text}`, { hint: notAnImage(text).hint ?? "" });
}

function registry(name: string, reference: string): ImageSource {
  if (!isRegistryReference(name)) throw notAnImage(reference);
  return { kind: "registry", reference: name };
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

/** Throws `denied` for a path that may not be looked at. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "EACCES") throw new CaissonError("denied", `the image ${path} may not be read`, { cause });
    return undefined;
  }
}

const machines: Record<string, { number: number; name: string }> = {
  x64: { number: 62, name: "x86_64" },
  arm64: { number: 183, name: "aarch64" },
};

/** Looks at a program that every root file system has. Throws `unsupported` when it is for another processor. */
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
  try {
    const fd = openSync(path, "r");
    try {
      readSync(fd, header, 0, header.length, 0);
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
  return header.toString("latin1", 0, 4) === "\x7fELF" ? header.readUInt16LE(18) : null;
}
