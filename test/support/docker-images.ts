import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

/**
 * Root file systems for test images, made only from this machine's files: no image is pulled. Safe to delete at any
 * time.
 */
/** Outlives the run, so it is not in the run's temporary folder. */
const cacheFolder = join(process.env.CAISSON_TEST_CACHE ?? tmpdir(), ".caisson-test-cache", "images");

export type TestImage = "busybox" | "debian";

/** Returns the path of a tar archive with that root file system, which is created on first use. */
export function imageArchive(image: TestImage): string {
  const source = image === "busybox" ? "/bin/busybox" : "/var/lib/dpkg/status";
  if (!existsSync(source))
    throw new Error(`no ${source} to make the ${image} test image from; scripts/setup --dev installs what is needed`);
  const { mtimeMs, size } = statSync(source);
  const key = createHash("sha256")
    .update(`${mtimeMs} ${size}\n`)
    .update(readFileSync(import.meta.filename))
    .digest("hex")
    .slice(0, 12);
  const archive = join(cacheFolder, `${image}-${key}.tar`);
  if (existsSync(archive)) return archive;
  mkdirSync(cacheFolder, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), "caisson-test-image-"));
  try {
    const unfinished = join(work, "image.tar");
    if (image === "busybox") packBusybox(join(work, "root"), unfinished);
    else packDebian(join(work, "root"), unfinished);
    renameSync(unfinished, archive);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return archive;
}

function packBusybox(root: string, archive: string): void {
  mkdirSync(join(root, "bin"), { recursive: true });
  copyFileSync("/bin/busybox", join(root, "bin/busybox"));
  chmodSync(join(root, "bin/busybox"), 0o755);
  for (const applet of execFileSync("/bin/busybox", ["--list"], { encoding: "utf8" }).split("\n").filter(Boolean)) {
    if (applet !== "busybox") symlinkSync("busybox", join(root, "bin", applet));
  }
  writeBasics(root);
  execFileSync("tar", ["--owner=0", "--group=0", "--numeric-owner", "-C", root, "-cf", archive, "."]);
}

function writeBasics(root: string): void {
  for (const folder of ["dev", "proc", "sys", "etc", "home", "root", "run", "usr", "var/tmp"])
    mkdirSync(join(root, folder), { recursive: true });
  for (const folder of ["tmp", "var/tmp"]) {
    mkdirSync(join(root, folder), { recursive: true });
    chmodSync(join(root, folder), 0o1777);
  }
  chmodSync(join(root, "root"), 0o700);
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\nnogroup:x:65534:\n");
  writeFileSync(join(root, "etc/shadow"), "root:*:19000:0:99999:7:::\n", { mode: 0o600 });
}

/**
 * Packs what a Debian base image contains, from the packages installed here: everything essential, its dependencies,
 * and a few tools.
 */
function packDebian(root: string, archive: string): void {
  const extra = ["apt", "procps", "python3-minimal", "libpython3-stdlib"];
  const packages = closure([...essentialPackages(), ...extra]);
  const basics = new Set(["/dev", "/proc", "/sys", "/etc", "/home", "/root", "/run", "/tmp", "/var", "/var/tmp"]);
  const paths = new Set<string>();
  for (const line of execFileSync("dpkg-query", ["-L", ...packages], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }).split("\n")) {
    if (!line.startsWith("/") || line === "/." || /^\/(etc|usr\/share\/(doc|man|locale|info|lintian|bug))(\/|$)/.test(line)) continue;
    const real = placeOf(line);
    if (real !== null && !basics.has(real)) paths.add(real.slice(1));
  }
  for (const link of ["bin", "sbin", "lib", "lib64", "lib32"]) if (existsSync(`/${link}`)) paths.add(link);
  for (const path of [
    "etc/alternatives",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/debian_version",
    "usr/bin/awk",
    "usr/bin/which",
  ]) {
    if (existsSync(`/${path}`)) paths.add(path);
  }
  mkdirSync(root);
  writeBasics(root);
  const list = join(dirname(archive), "files");
  writeFileSync(list, [...paths].sort().join("\n"));
  rmSync(join(root, "usr"), { recursive: true });
  const common = ["--owner=0", "--group=0", "--numeric-owner"];
  execFileSync("tar", [...common, "-C", root, "-cf", archive, "."]);
  execFileSync("tar", [...common, "--no-recursion", "-C", "/", "-T", list, "-rf", archive]);
}

/**
 * Returns a path with its folder's links resolved, since `/bin/ls` is `/usr/bin/ls` on a merged system. Null if it does
 * not exist.
 */
function placeOf(path: string): string | null {
  try {
    const place = join(realpathSync(dirname(path)), basename(path));
    lstatSync(place);
    return place;
  } catch {
    return null;
  }
}

function essentialPackages(): string[] {
  return execFileSync("dpkg-query", ["-W", "-f", `\${Essential} \${binary:Package}\n`], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.startsWith("yes "))
    .map((line) => line.slice(4));
}

/** Returns the packages and all their dependencies that are installed here. */
function closure(names: readonly string[]): string[] {
  const depends = new Map<string, string[]>();
  const format = `\${Package}\t\${Pre-Depends}, \${Depends}\t\${Provides}\n`;
  for (const line of execFileSync("dpkg-query", ["-W", "-f", format], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }).split("\n")) {
    const [name, needs, provides] = line.split("\t");
    if (!name || needs === undefined) continue;
    const wanted = needs.split(/[,|]/).map((need) => need.trim().split(/[ (:]/)[0] ?? "");
    depends.set(name, [...(depends.get(name) ?? []), ...wanted.filter(Boolean)]);
    for (const provided of (provides ?? "").split(",")) {
      const virtual = provided.trim().split(/[ (:]/)[0];
      if (virtual && !depends.has(virtual)) depends.set(virtual, []);
    }
  }
  const installed = new Set(
    execFileSync("dpkg-query", ["-W", "-f", `\${Package} \${db:Status-Status}\n`], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.endsWith(" installed"))
      .map((line) => line.split(" ")[0] ?? ""),
  );
  const found = new Set<string>();
  const queue = names.map((name) => name.split(":")[0] ?? name);
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (found.has(name) || !installed.has(name)) continue;
    found.add(name);
    queue.push(...(depends.get(name) ?? []));
  }
  return [...found];
}
