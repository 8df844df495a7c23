import { createHash } from "node:crypto";
import { copyFile, mkdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { ABSENT, ifErrno, isErrno } from "../../../lib/failures.ts";
import { randomLetters } from "../../../lib/new-id.ts";
import { runInside } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";

/** Returns CRIU's path. Throws `unsupported` if processes cannot be stored here. */
export function requireCriu(oci: OciContext): string {
  const path = oci.criu();
  if (path !== null) return path;
  throw new CaissonError("unsupported", "processes cannot be stored without CRIU and root", {
    hint: "Start Caisson as root, and install CRIU 4 or later (`criu` on PATH or in the configuration); `caisson doctor` reports whether it works.",
  });
}

/**
 * Returns a folder with CRIU, its libraries and their loader, for use inside a sandbox's mount namespace, where the
 * machine's own do not exist. Copies them once.
 */
export async function criuTool(oci: OciContext): Promise<string> {
  const path = requireCriu(oci);
  const { mtimeMs, size } = await stat(path);
  const name = `criu-${createHash("sha256").update(`${path} ${mtimeMs} ${size}`).digest("hex").slice(0, 12)}`;
  const tools = join(oci.context.stateDir, "tools");
  const target = join(tools, name);
  if ((await ifErrno(stat(target), ABSENT, null)) !== null) return target;
  const files = librariesIn(await runInside(oci, ["env", "LD_TRACE_LOADED_OBJECTS=1", path]));
  const draft = join(tools, `.new-${randomLetters(8)}`);
  await mkdir(draft, { recursive: true, mode: 0o755 });
  try {
    await copyFile(path, join(draft, "criu"));
    for (const file of files) await copyFile(file, join(draft, basename(file).startsWith("ld-") ? "ld.so" : basename(file)));
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process copied them first.
    if (!isErrno(error, "ENOTEMPTY", "EEXIST")) throw error;
  }
  return target;
}

/** Reads the loader's list of libraries: `NAME => PATH (ADDRESS)`, or for the loader itself `PATH (ADDRESS)`. */
function librariesIn(lines: readonly string[]): string[] {
  return lines.flatMap((line) => /(\/\S+) \(0x[0-9a-f]+\)$/.exec(line)?.[1] ?? []);
}
