import { readFileSync } from "node:fs";
import { release } from "node:os";
import { CaissonError } from "../../contract/error/error.ts";
import { ifErrnoSync, UNREACHABLE } from "../../lib/failures.ts";
import type { Finding } from "../../sandbox/runtime.ts";
import { findOciRuntimes, knownFlaws, type OciBinary, ociVersion } from "./discover.ts";
import { isChroot, userNamespaceFindings } from "./identity/user-namespaces.ts";
import type { OciContext } from "./oci-context.ts";
import { LINGER_FIX } from "./systemd/user-systemd.ts";

/** Reports on this machine without starting anything. Never throws. */
export async function findings(oci: OciContext): Promise<Finding[]> {
  const rootless = process.getuid?.() !== 0;
  return [...(await runtimeFindings(oci)), ...kernelFindings(rootless), ...identityFindings(oci), ...limitFindings(oci)];
}

async function runtimeFindings(oci: OciContext): Promise<Finding[]> {
  let chosen: OciBinary | undefined;
  try {
    chosen = oci.binaries()[0];
  } catch (error) {
    return [problemOf(error)];
  }
  const found = findOciRuntimes(oci.options.path);
  if (chosen === undefined) {
    const only = found.map(({ name }) => name).join(", ");
    const text = only === "" ? "no OCI runtime is installed" : `${only} is installed, but cannot receive the guest's socket`;
    return [{ level: "problem", text, fix: "apt install crun" }];
  }
  const result: Finding[] = [];
  for (const binary of [chosen, ...found.filter(({ path }) => path !== chosen.path)]) {
    const version = await ociVersion(binary);
    const role = binary.path === chosen.path ? "is used" : "is also installed";
    result.push({ level: "ok", text: `${binary.path} ${role} (${version?.text ?? "of an unknown version"})` });
    if (version === null || binary.path !== chosen.path) continue;
    for (const flaw of knownFlaws(binary.name, version)) {
      result.push({
        level: "note",
        text: `${version.text} is older than ${flaw.fixedIn}, which fixed ${flaw.ids.join(", ")}: ${flaw.meaning}. Your distribution may have backported the fix`,
        fix: `install ${binary.name} ${flaw.fixedIn} or later, or use crun`,
      });
    }
  }
  return result;
}

function kernelFindings(rootless: boolean): Finding[] {
  const result: Finding[] = [];
  const [major = 0, minor = 0] = release().split(".").map(Number);
  const needed = rootless ? [5, 11] : [5, 19];
  if (major < (needed[0] ?? 0) || (major === needed[0] && minor < (needed[1] ?? 0))) {
    const what = rootless ? "overlay mounts for ordinary users" : "mapped owners in overlay mounts";
    result.push({
      level: "problem",
      text: `Linux ${release()} has no ${what}, which need ${needed.join(".")} or later`,
      fix: rootless ? "upgrade the kernel" : "upgrade the kernel, or run Caisson as an ordinary user",
    });
  }
  result.push(...userNamespaceFindings(readSetting, { rootless, chroot: isChroot() }));
  return result;
}

function identityFindings(oci: OciContext): Finding[] {
  try {
    const { rootless, root, furtherRanges } = oci.identity();
    const ranges = furtherRanges === 0 ? "a range that all sandboxes share" : `one of ${furtherRanges} separate ranges`;
    const who = rootless
      ? `rootless: uid 1000 inside is the caller, and all others come from the caller's range (root inside is ${root.uid} on the host)`
      : `as root: all ids inside come from ${ranges}, starting at ${root.uid}`;
    return [{ level: "ok", text: who }];
  } catch (error) {
    return [problemOf(error)];
  }
}

function limitFindings(oci: OciContext): Finding[] {
  const { parents, reason, manager } = oci.cgroups();
  const places = parents.map(({ controllers, version, dir, makes }) => {
    const where = makes === "systemd" ? `scopes of the user's systemd, in ${dir}` : dir;
    return `${controllers.join(",") || "kill and freeze"} (v${version}) in ${where}`;
  });
  const result: Finding[] = [];
  if (places.length > 0) result.push({ level: "ok", text: `control groups: ${places.join("; ")}` });
  if (manager?.lingering === true) result.push({ level: "ok", text: "kept sandboxes survive a logout: lingering is on" });
  if (manager?.lingering === false)
    result.push({ level: "note", text: "kept sandboxes end with the user's last session: lingering is off", fix: LINGER_FIX });
  if (reason !== null) {
    const [text = reason, fix] = reason.split("; ");
    result.push({ level: "note", text, ...(fix === undefined ? {} : { fix }) });
  }
  return result;
}

export function problemOf(error: unknown): Finding {
  const text = error instanceof Error ? error.message : String(error);
  return error instanceof CaissonError && error.hint !== undefined
    ? { level: "problem", text, fix: error.hint }
    : { level: "problem", text };
}

function readSetting(path: string): string | null {
  return ifErrnoSync(() => readFileSync(path, "latin1"), UNREACHABLE, null);
}
