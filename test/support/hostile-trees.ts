import { execFileSync } from "node:child_process";
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";

/** A file, link or repository that an attacker put in a folder. `OUT` in a link's target is a folder outside. */
export type HostileEntry =
  | { kind: "file"; path: string; content: string; mode: number }
  | { kind: "link"; path: string; target: string }
  | { kind: "folder"; path: string }
  | { kind: "fifo"; path: string }
  | { kind: "device"; path: string }
  | { kind: "hardLink"; path: string }
  | { kind: "repository"; path: string }
  | { kind: "bytes"; path: string }
  | { kind: "journal"; path: string; operation: string; victim: string };

const name = fc.constantFrom(
  "a",
  "b",
  "c",
  "sub",
  "HEAD",
  "objects",
  "refs",
  "config",
  "commondir",
  "esc\u001b[31m",
  "line\nbreak",
  "\u202ebidi",
  ".envrc",
);
export const hostilePath = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
export const hostileTarget = fc.constantFrom(
  ...[
    "..",
    ".",
    "a",
    "b/c",
    "../outside",
    "../../outside/secret",
    "a/../../outside",
    "a/b/..",
    "sub/../../outside/secret",
    "c/../..",
    "OUT/secret",
  ],
  ...["OUT", "a/b/c/../../../../outside/secret", ".git/config", "sub/objects", "b/../c/../..", "../../../outside", "c/./../sub/.."],
);
const deep = fc.constant("d/".repeat(60).concat("f"));
const content = fc.constantFrom(
  "",
  "1\n",
  "ref: refs/heads/main\n",
  "[core]\n\tfsmonitor = EVIL\n\tworktree = ..\n",
  "gitdir: ../outside\n",
  "two\nlines\n",
);
const mode = fc.constantFrom(0o644, 0o755, 0o4755, 0o2755, 0o600, 0o000);
const operation = fc.constantFrom("keep", "put", "rmdir", "mkdir");
const victim = fc.constantFrom("../outside/secret", "a/secret", "sub/keys/k", "b");

export const hostileEntry: fc.Arbitrary<HostileEntry> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("file" as const), path: fc.oneof(hostilePath, deep), content, mode }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("link" as const), path: hostilePath, target: hostileTarget }) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom("folder", "fifo", "device", "hardLink", "repository", "bytes"), hostilePath)
      .map(([kind, path]): HostileEntry => ({ kind, path }) as HostileEntry),
  },
  {
    weight: 1,
    // The folder's own repository, for branches.
    arbitrary: fc.constant<HostileEntry>({ kind: "repository", path: "." }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("journal" as const),
      path: fc.constantFrom(".caisson-apply", `.caisson-apply-${"0".repeat(32)}`),
      operation,
      victim,
    }),
  },
);

/** Creates the entry, unless an existing file is in the way. */
export function plant(folder: string, entry: HostileEntry, places: { outside: string; evil: string }): void {
  const filled = (text: string) => text.replaceAll("OUT", places.outside).replaceAll("EVIL", places.evil);
  const at = join(folder, entry.path);
  try {
    // Never follows a link: everything is created inside the folder.
    mkdirSync(dirname(at), { recursive: true });
    if (!realpathSync(dirname(at)).startsWith(realpathSync(folder))) return;
    if (entry.kind === "file") {
      writeFileSync(at, filled(entry.content), { flag: "wx" });
      chmodSync(at, entry.mode);
    } else if (entry.kind === "link") symlinkSync(filled(entry.target), at);
    else if (entry.kind === "folder") mkdirSync(at);
    else if (entry.kind === "hardLink") linkSync(join(places.outside, "secret"), at);
    else if (entry.kind === "fifo") execFileSync("mkfifo", [at], { stdio: "ignore" });
    else if (entry.kind === "device") execFileSync("mknod", [at, "c", "1", "3"], { stdio: "ignore" });
    else if (entry.kind === "bytes") symlinkSync("c/../..", Buffer.concat([Buffer.from(at), Buffer.from([0xff])]));
    else if (entry.kind === "repository") plantRepository(at, places.evil);
    else if (entry.kind === "journal") plantJournal(at, entry);
  } catch {
    // An existing file is in the way, or only root may create this.
  }
}

function plantRepository(at: string, evil: string): void {
  for (const part of ["objects", "refs/heads", "hooks"]) mkdirSync(join(at, ".git", part), { recursive: true });
  writeFileSync(join(at, ".git/HEAD"), "ref: refs/heads/main\n");
  writeFileSync(join(at, ".git/config"), `[core]\n\tfsmonitor = ${evil}\n\thooksPath = ${dirname(evil)}\n[diff]\n\texternal = ${evil}\n`);
  writeFileSync(join(at, ".git/hooks/reference-transaction"), `#!/bin/sh\nexec ${evil}\n`, { mode: 0o755 });
}

function plantJournal(at: string, entry: Extract<HostileEntry, { kind: "journal" }>): void {
  mkdirSync(at);
  for (const file of ["old-0", "new-0"]) writeFileSync(join(at, file), "evil");
  const base = { kind: entry.operation, path: entry.victim };
  const more = {
    keep: { kept: "old-0", replaced: false },
    put: { fresh: "new-9", replaces: false },
    rmdir: { mode: 0o777, uid: 0, gid: 0 },
  }[entry.operation];
  const operations = [{ ...base, ...more }];
  writeFileSync(
    join(at, "journal.json"),
    JSON.stringify(at.endsWith("apply") ? operations : { staging: entry.path, inode: lstatSync(at).ino, operations }),
  );
  writeFileSync(join(at, "apply.json"), JSON.stringify({ staging: entry.path, folder: dirname(at) }));
}

/** Returns every property of a folder's files that a program could change, including times. */
export function fingerprint(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (path: string) => {
    const stats = lstatSync(path);
    const content = stats.isSymbolicLink() ? readlinkSync(path) : stats.isFile() ? readFileSync(path, "latin1") : "";
    found[path] = [stats.ino, stats.mode.toString(8), stats.uid, stats.gid, stats.mtimeMs, content].join(" ");
    if (stats.isDirectory()) for (const each of readdirSync(path)) visit(join(path, each));
  };
  visit(folder);
  return found;
}

/**
 * Returns the dangers in a folder, as the kernel sees it: links that lead out, and folders that git treats as
 * repositories.
 */
export function dangersIn(folder: string): Set<string> {
  const root = realpathSync(folder);
  const dangers = new Set<string>();
  const visit = (path: string) => {
    const names = readdirSync(path, { withFileTypes: true });
    const has = (each: string) => names.some((entry) => entry.name === each);
    if (has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))) dangers.add(`repository ${path}`);
    for (const entry of names) {
      const at = join(path, entry.name);
      if (entry.isDirectory()) visit(at);
      if (!entry.isSymbolicLink()) continue;
      const real = landing(at);
      if (real !== null && real !== root && !real.startsWith(`${root}/`)) dangers.add(`link ${at} -> ${readlinkSync(at)}`);
    }
  };
  visit(root);
  return dangers;
}

function landing(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
