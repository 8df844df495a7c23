import { execFile } from "node:child_process";
import { accessSync, constants, realpathSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { CaissonError } from "../../contract/error/error.ts";
import { parseOciRuntime } from "../../contract/sandbox/runtime-names.ts";
import { ignore, ignoring } from "../../lib/failures.ts";
import { realPathOrNull } from "../../lib/paths.ts";

/** Fastest first: crun starts in 10 ms, runc in 23 ms. */
export const ociRuntimeNames = ["crun", "runc", "youki", "runsc"] as const;

export interface OciBinary {
  name: string;
  path: string;
}

const fixedFolders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const VERSION_TIMEOUT_MS = 5_000;

/** Returns all installed OCI runtimes, in order of preference. */
export function findOciRuntimes(path: string): OciBinary[] {
  return ociRuntimeNames.flatMap((name) => {
    const found = findProgram(name, path);
    return found === null ? [] : [{ name, path: found }];
  });
}

/**
 * Finds a program by name, on the given PATH or in the usual folders. Resolves links, since mounts may hide their
 * folder.
 */
export function findProgram(name: string, path: string): string | null {
  for (const folder of [...path.split(":").filter(isAbsolute), ...fixedFolders]) {
    const candidate = join(folder, name);
    const found = ignoring("a folder of PATH may be on a file system that fails", () => {
      accessSync(candidate, constants.X_OK);
      return realpathSync(candidate);
    });
    if (found !== undefined) return found;
  }
  return null;
}

/**
 * Finds the OCI runtime that the user chose by name or path. Throws `invalid` if it is not one, and `unavailable` if it
 * is not installed.
 */
export function chosenOciRuntime(choice: string, path: string): OciBinary {
  const selection = parseOciRuntime(choice);
  const name = basename(choice);
  const known = ociRuntimeNames.find(
    (candidate) => name === candidate || name.startsWith(`${candidate}-`) || name.startsWith(`${candidate}.`),
  );
  if (selection === null || (selection.kind === "name" && known === undefined)) {
    throw new CaissonError("invalid", `${JSON.stringify(choice)} is not an OCI runtime`, {
      hint: `Choose one of ${ociRuntimeNames.join(", ")}, or give its absolute path.`,
    });
  }
  const found = selection.kind === "file" ? findProgram(name, choice.slice(0, -name.length - 1) || "/") : findProgram(selection.name, path);
  if (found === null || (selection.kind === "file" && found !== realPathOrNull(choice))) {
    throw new CaissonError("unavailable", `the OCI runtime ${choice} is not installed`, {
      hint: `Install it (\`apt install ${known ?? "crun"}\`), or let Caisson choose.`,
    });
  }
  return { name: known ?? name, path: found };
}

export interface OciVersion {
  /** The first line of the output. */
  text: string;
  /** Major, minor, patch. */
  numbers: [number, number, number];
}

export async function ociVersion(binary: OciBinary): Promise<OciVersion | null> {
  const asking = promisify(execFile)(binary.path, ["--version"], { timeout: VERSION_TIMEOUT_MS, maxBuffer: 65_536 });
  const answer = await ignore(asking, "the caller reports a program without a version");
  return answer === undefined ? null : parseVersion(answer.stdout);
}

export function parseVersion(output: string): OciVersion | null {
  const text = output.split("\n")[0]?.trim() ?? "";
  const [, major, minor, patch] = /(?<!\d)(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?/.exec(text) ?? [];
  if (major === undefined) return null;
  return { text, numbers: [Number(major), Number(minor), Number(patch ?? 0)] };
}

function atLeast(version: OciVersion, [major, minor, patch]: readonly [number, number, number]): boolean {
  const [a, b, c] = version.numbers;
  return a !== major ? a > major : b !== minor ? b > minor : c >= patch;
}

export interface KnownFlaw {
  ids: string[];
  /** What the flaw allows, and how it affects Caisson. */
  meaning: string;
  fixedIn: string;
}

/** Returns published flaws that later versions fix. A distribution may have fixed them without a new version number. */
export function knownFlaws(name: string, version: OciVersion): KnownFlaw[] {
  if (name !== "runc") return [];
  const flaws: KnownFlaw[] = [];
  if (!atLeast(version, [1, 1, 12])) {
    flaws.push({
      ids: ["CVE-2024-21626"],
      meaning:
        "a host descriptor leaks to process 1; Caisson closes all but its own, and process 1 is the guest, so only a flaw in the guest could exploit it",
      fixedIn: "1.1.12",
    });
  }
  const fixed2025 = atLeast(version, [1, 3, 3]) || (version.numbers[0] === 1 && version.numbers[1] === 2 && version.numbers[2] >= 8);
  if (!fixed2025) {
    flaws.push({
      ids: ["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"],
      meaning:
        "races while masked paths and /dev/console are mounted can redirect runc's writes; this takes a prepared image or mounts shared with a running container, neither of which exists here before the guest runs, and Caisson starts runc inside the sandbox's user namespace, where it cannot write to the host's /proc/sys",
      fixedIn: "1.2.8 or 1.3.3",
    });
  }
  return flaws;
}
