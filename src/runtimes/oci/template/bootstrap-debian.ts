import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { z } from "zod";
import { CaissonError } from "../../../contract/error.ts";
import type { BuildImage } from "../../../contract/image-verbs.ts";
import { findProgram } from "../discover.ts";

const LINE_CHARACTERS_MAX = 500;
/** On a disk, and open to the other ids that it downloads and installs as: a folder of the user's own is not. */
const WORK_FOLDER = "/var/tmp";
const KILL_GRACE_MS = 10_000;

export interface DebianArchive {
  /** Of the plain archive. */
  digest: string;
  suite: string;
}

/**
 * Has mmdebstrap write a Debian system to `target`, as a tar archive, and yields its own lines on the way. As an
 * ordinary user it works in a user namespace of its own. It ends when we do, and cleans up after itself. Throws
 * `unavailable` without mmdebstrap and when it fails.
 */
export async function* bootstrapDebian(options: {
  request: z.output<typeof BuildImage>;
  target: string;
  path: string;
  bytesMax: number;
}): AsyncGenerator<string, DebianArchive> {
  const { request } = options;
  const path = [...new Set([...options.path.split(":"), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"])].join(":");
  if (findProgram("mmdebstrap", path) === null)
    throw new CaissonError("unavailable", "mmdebstrap, which builds Debian images, is not installed", {
      hint: "Install it: `apt install mmdebstrap` (as an ordinary user also `uidmap`).",
    });
  const suite = request.suite ?? ownSuite();
  // It is told to end when we die, whatever we die of: the name is util-linux's, which every distribution has.
  const argv = [
    "--pdeathsig",
    "TERM",
    "mmdebstrap",
    "--format=tar",
    "--dpkgopt=force-unsafe-io",
    `--variant=${request.variant}`,
    ...includes(request.packages),
  ];
  const child = spawn("setpriv", [...argv, "--", suite, "-", ...(request.mirror === undefined ? [] : [request.mirror])], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: "/",
    // Settings of dpkg and apt in the user's home are not for images.
    env: { HOME: "/nonexistent", PATH: path, LC_ALL: "C.UTF-8", TMPDIR: WORK_FOLDER },
  });
  const ended = once(child, "close") as Promise<[number | null]>;
  // Its failures are told where they are awaited.
  ended.catch(() => {});
  try {
    const digest = createHash("sha256");
    const writing = pipeline(
      child.stdout,
      hashing(digest, options.bytesMax),
      createWriteStream(options.target, { flags: "wx", mode: 0o600 }),
    );
    writing.catch(() => child.kill("SIGTERM"));
    let reason = "";
    for await (const text of createInterface({ input: child.stderr })) {
      const line = text.slice(0, LINE_CHARACTERS_MAX);
      if (line.startsWith("E: ") && reason === "") reason = line.slice(3);
      if (line.trim() !== "") yield line;
    }
    const [exitCode] = await ended;
    await writing.catch((cause) => failedToWrite(cause, options.target));
    if (exitCode === 0) return { digest: `sha256:${digest.digest("hex")}`, suite };
    throw new CaissonError("unavailable", `mmdebstrap could not build the image${reason === "" ? "" : `: ${reason}`}`, {
      hint: "Check the names of the suite and the packages, and the network; on another system than Debian `apt install debian-archive-keyring`, too.",
    });
  } finally {
    await end(child, ended);
  }
}

/** The release of this machine, where it is a Debian. */
function ownSuite(): string {
  try {
    const text = readFileSync("/etc/os-release", "utf8");
    const suite = /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(text)?.[1];
    return /^ID=debian$/m.test(text) && suite !== undefined ? suite : "stable";
  } catch {
    return "stable";
  }
}

function includes(packages: readonly string[]): string[] {
  return packages.length === 0 ? [] : [`--include=${packages.join(",")}`];
}

function hashing(digest: ReturnType<typeof createHash>, bytesMax: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > bytesMax) return done(new CaissonError("too_large", `the image has more than ${bytesMax} bytes`));
      digest.update(chunk);
      done(null, chunk);
    },
  });
}

function failedToWrite(cause: NodeJS.ErrnoException, target: string): never {
  if (cause instanceof CaissonError) throw cause;
  const full = cause.code === "ENOSPC" || cause.code === "EDQUOT";
  throw new CaissonError(full ? "no_space" : "internal", `the image could not be written to ${target}`, { cause });
}

/** It removes what it was making, if it is given the time. */
async function end(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), KILL_GRACE_MS);
  await ended.catch(() => {});
  clearTimeout(timer);
}
