import { execFile } from "node:child_process";
import { accessSync, constants, realpathSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { CaissonError } from "../../contract/error.ts";
import { parseOciRuntime } from "../../contract/machine-names.ts";

/** Fastest first: a start takes crun 10 ms and runc 23. */
export const ociRuntimeNames = ["crun", "runc", "youki", "runsc"] as const;

export interface OciBinary {
  name: string;
  path: string;
}

const fixedFolders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const VERSION_TIMEOUT_MS = 5_000;

/** All OCI runtimes that are installed, in order of preference. */
export function findOciRuntimes(path: string): OciBinary[] {
  return ociRuntimeNames.flatMap((name) => {
    const found = findProgram(name, path);
    return found === null ? [] : [{ name, path: found }];
  });
}

/**
 * A program by name, on the given PATH or where such programs usually lie. Links are resolved, since mounts may hide
 * their folder.
 */
export function findProgram(name: string, path: string): string | null {
  for (const folder of [...path.split(":").filter(isAbsolute), ...fixedFolders]) {
    const candidate = join(folder, name);
    try {
      accessSync(candidate, constants.X_OK);
      return realpathSync(candidate);
    } catch {
      // Not there.
    }
  }
  return null;
}

/**
 * The OCI runtime somebody asked for, by name or path. Throws `invalid` for what is not one, `unavailable` for one that
 * is not installed.
 */
export function chosenOciRuntime(choice: string, path: string): OciBinary {
  const asked = parseOciRuntime(choice);
  const name = basename(choice);
  const known = ociRuntimeNames.find(
    (candidate) => name === candidate || name.startsWith(`${candidate}-`) || name.startsWith(`${candidate}.`),
  );
  if (asked === null || (asked.kind === "name" && known === undefined)) {
    throw new CaissonError("invalid", `${JSON.stringify(choice)} is not an OCI runtime`, {
      hint: `Choose one of ${ociRuntimeNames.join(", ")}, or give the absolute path of one.`,
    });
  }
  const found = asked.kind === "file" ? findProgram(name, choice.slice(0, -name.length - 1) || "/") : findProgram(asked.name, path);
  if (found === null || (asked.kind === "file" && found !== realpathOrNull(choice))) {
    throw new CaissonError("unavailable", `the OCI runtime ${choice} is not installed`, {
      hint: `Install it (\`apt install ${known ?? "crun"}\`), or leave the choice to Caisson.`,
    });
  }
  return { name: known ?? name, path: found };
}

function realpathOrNull(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

export interface OciVersion {
  /** The whole first line. */
  text: string;
  /** Major, minor, patch. */
  numbers: [number, number, number];
}

export async function ociVersion(binary: OciBinary): Promise<OciVersion | null> {
  try {
    const { stdout } = await promisify(execFile)(binary.path, ["--version"], { timeout: VERSION_TIMEOUT_MS, maxBuffer: 65_536 });
    return parseVersion(stdout);
  } catch {
    return null;
  }
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
  /** What it lets somebody do, and what that means here. */
  meaning: string;
  fixedIn: string;
}

/**
 * Published flaws of the version, which later versions fix. A distribution may have fixed them without a new number.
 */
export function knownFlaws(name: string, version: OciVersion): KnownFlaw[] {
  if (name !== "runc") return [];
  const flaws: KnownFlaw[] = [];
  if (!atLeast(version, [1, 1, 12])) {
    flaws.push({
      ids: ["CVE-2024-21626"],
      meaning:
        "a descriptor of the host leaks to process 1; Caisson closes all but its own, and process 1 is the guest, so only a flaw in the guest could use it",
      fixedIn: "1.1.12",
    });
  }
  const fixed2025 = atLeast(version, [1, 3, 3]) || (version.numbers[0] === 1 && version.numbers[1] === 2 && version.numbers[2] >= 8);
  if (!fixed2025) {
    flaws.push({
      ids: ["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"],
      meaning:
        "races while masked paths and /dev/console are mounted can redirect runc's writes; they need a prepared image or mounts shared with a running container, neither of which exists here before the guest runs, and Caisson starts runc inside the sandbox's user namespace, where it cannot write to the host's /proc/sys",
      fixedIn: "1.2.8 or 1.3.3",
    });
  }
  return flaws;
}
