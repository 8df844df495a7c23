import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import type { BuildImage } from "../../../contract/image/image-verbs.ts";
import { ifErrnoSync, ignore, UNREACHABLE } from "../../../lib/failures.ts";
import { findProgram } from "../discover.ts";

const LINE_CHARACTERS_MAX = 500;
/**
 * On a disk, and accessible to the other ids that mmdebstrap downloads and installs as, unlike the user's own folders.
 */
const WORK_FOLDER = "/var/tmp";
const KILL_GRACE_MS = 10_000;

export interface DebianArchive {
  /** The digest of the uncompressed archive. */
  digest: string;
  suite: string;
}

/**
 * Runs mmdebstrap to write a Debian system to `target` as a tar archive, and yields its output lines. As an ordinary
 * user it works in a user namespace. It ends with this process, and cleans up after itself. Throws `unavailable` if
 * mmdebstrap is missing or fails.
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
  // setpriv makes the kernel signal mmdebstrap when we die. It is part of util-linux, which every distribution has.
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
    // Settings of dpkg and apt in the user's home must not affect images.
    env: { HOME: "/nonexistent", PATH: path, LC_ALL: "C.UTF-8", TMPDIR: WORK_FOLDER },
  });
  const ended = once(child, "close") as Promise<[number | null]>;
  void ignore(ended, "awaited below");
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
      hint: "Check the suite and package names, and the network. On systems other than Debian, also run `apt install debian-archive-keyring`.",
    });
  } finally {
    await end(child, ended);
  }
}

/** Returns this machine's release on Debian, otherwise `stable`. */
function ownSuite(): string {
  const text = ifErrnoSync(() => readFileSync("/etc/os-release", "utf8"), UNREACHABLE, "");
  const suite = /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(text)?.[1];
  return /^ID=debian$/m.test(text) && suite !== undefined ? suite : "stable";
}

function includes(packages: readonly string[]): string[] {
  return packages.length === 0 ? [] : [`--include=${packages.join(",")}`];
}

function hashing(digest: ReturnType<typeof createHash>, bytesMax: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > bytesMax) return done(new CaissonError("too_large", `the image is larger than ${bytesMax} bytes`));
      digest.update(chunk);
      done(null, chunk);
    },
  });
}

function failedToWrite(cause: NodeJS.ErrnoException, target: string): never {
  if (cause instanceof CaissonError) throw cause;
  const full = cause.code === "ENOSPC" || cause.code === "EDQUOT";
  throw new CaissonError(full ? "no_space" : "internal", `could not write the image to ${target}`, { cause });
}

/** Ends mmdebstrap, and gives it time to remove its unfinished work. */
async function end(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), KILL_GRACE_MS);
  await ignore(ended, "the caller awaits it");
  clearTimeout(timer);
}
