import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Writes a Debian archive with one package, `tiny`, which is a whole system: a shell and a few programs. Returns its
 * mirror and suite.
 */
export function writeDebianArchive(folder: string): { mirror: string; suite: string } {
  const arch = execFileSync("dpkg", ["--print-architecture"], { encoding: "utf8" }).trim();
  const tree = join(folder, "tree");
  for (const name of ["DEBIAN", "bin", "dev", "etc", "proc", "sys"]) mkdirSync(join(tree, name), { recursive: true, mode: 0o755 });
  cpSync("/bin/busybox", join(tree, "bin/busybox"));
  for (const name of ["sh", "ls", "cat", "id"]) symlinkSync("busybox", join(tree, "bin", name));
  const fields = ["Package: tiny", "Version: 1", `Architecture: ${arch}`, "Maintainer: Ada <ada@example.com>", "Description: a test"];
  writeFileSync(join(tree, "DEBIAN/control"), `${fields.join("\n")}\n`);
  mkdirSync(join(folder, "pool"));
  execFileSync("dpkg-deb", ["--root-owner-group", "--build", tree, join(folder, "pool/tiny.deb")], { stdio: "ignore" });
  const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
  const file = readFileSync(join(folder, "pool/tiny.deb"));
  const packages = Buffer.from(
    [...fields, "Filename: pool/tiny.deb", `Size: ${file.length}`, `SHA256: ${digest(file)}`, "", ""].join("\n"),
  );
  const lists = join(folder, `dists/test/main/binary-${arch}`);
  mkdirSync(lists, { recursive: true });
  writeFileSync(join(lists, "Packages"), packages);
  const release = [
    "Suite: test",
    "Codename: test",
    `Architectures: ${arch}`,
    "Components: main",
    `Date: ${new Date().toUTCString().replace("GMT", "UTC")}`,
    "SHA256:",
    ` ${digest(packages)} ${packages.length} main/binary-${arch}/Packages`,
  ];
  writeFileSync(join(folder, "dists/test/Release"), `${release.join("\n")}\n`);
  execFileSync("chmod", ["-R", "a+rX", folder]);
  return { mirror: `deb [trusted=yes] copy://${folder} test main`, suite: "test" };
}
