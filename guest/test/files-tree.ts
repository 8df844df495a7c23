import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Only root can change owners and act as another user. */
export const asRoot = process.getuid?.() === 0;

/** Runs GNU tar. */
export const tar = (...args: string[]) => execFileSync("tar", args, { maxBuffer: 1 << 28 });

/** Describes everything that an archive stores about a tree, one line per entry. */
export const describeTree = (path: string) =>
  execFileSync(
    "sh",
    [
      "-c",
      `cd "$0" && find . -printf '%P %y %m %T@ %s %l %n\\n' | sed 's/\\.0*  *\\([0-9]\\)/ \\1/' | sort; find . -type f -exec sha256sum {} + | sort`,
      path,
    ],
    {
      encoding: "utf8",
    },
  ).replaceAll(/( d \d+ \S+) \d+/g, "$1");

/** Creates a tree with everything that an archive can hold; on request, with names too long for some formats. */
export function makeTree(path: string, { longNames }: { longNames: boolean }): void {
  mkdirSync(join(path, "empty"), { recursive: true });
  mkdirSync(join(path, "deep/er/still"), { recursive: true });
  writeFileSync(join(path, "deep/er/script"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(path, "large"), randomBytes(1_500_001));
  writeFileSync(join(path, "exact"), randomBytes(1024));
  writeFileSync(join(path, "nothing"), "");
  writeFileSync(Buffer.from([...Buffer.from(`${path}/byte-`), 0xff, 0xe4]), "bytes");
  linkSync(join(path, "exact"), join(path, "deep/exact-again"));
  symlinkSync("../large", join(path, "deep/link"));
  symlinkSync("nowhere", join(path, "dangling"));
  if (longNames) {
    const long = join(path, "l".repeat(120), "m".repeat(120), "n".repeat(120));
    mkdirSync(long, { recursive: true });
    writeFileSync(join(long, "o".repeat(200)), "far down");
    writeFileSync(Buffer.concat([Buffer.from(`${long}/`), Buffer.alloc(150, 0xfe)]), "not UTF-8");
    symlinkSync("p".repeat(300), join(path, "long-link"));
    linkSync(join(long, "o".repeat(200)), join(path, "zz-hard-of-long"));
    const prefixed = join(path, "q".repeat(90), "r".repeat(60));
    mkdirSync(prefixed, { recursive: true });
    writeFileSync(join(prefixed, "s".repeat(90)), "prefix");
  }
  execFileSync("sh", ["-c", `cd "$0" && find . -exec touch -h -d @1500000000 {} + && chmod 700 empty && chmod 550 deep/er`, path]);
}
