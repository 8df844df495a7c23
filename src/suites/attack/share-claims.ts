import { chown, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { hasFeature } from "../conformance/context.ts";
import { type AttackContext, finishAttempt, probeMissing } from "./attack-context.ts";
import { type Claim, defineClaim, unverifiable } from "./claim.ts";
import { answers } from "./isolation-claims.ts";

const MIB = 1024 * 1024;
/** Any owner but root, because not every runtime shares root's folders. */
const FOLDER_OWNER = 12_345;
const SET_ID = 0o6000;
const noWall = "without a wall, this would exhaust the machine itself";

/** Creates the sandbox, or returns null if the runtime rejects the config, which is as safe as enforcing it. */
async function unlessRefused(context: AttackContext, config: SandboxConfigInput): Promise<OwnedSandbox | null> {
  return context.create(config).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "unsupported") return null;
    throw error;
  });
}

interface SetIdSeen {
  /** The set-id files in the host folder, by the user inside who created them. */
  user: string[];
  root: string[] | "refused" | "none";
  tried: number;
}

async function setIdFiles(context: AttackContext, who: "user" | "root"): Promise<{ found: string[]; tried: number } | "refused" | null> {
  const { folder } = await context.canary();
  if (process.getuid?.() === 0) await chown(folder, FOLDER_OWNER, FOLDER_OWNER);
  const workspace = { kind: "folder" as const, path: folder, access: "rw" as const };
  const sandbox = await unlessRefused(context, { workspace, allowRoot: who === "root" });
  if (sandbox === null) return "refused";
  const lines = await context.probe(sandbox, ["set-id"], who === "root" ? { user: "root" } : {});
  if (lines === null) return null;
  const found: string[] = [];
  for (const name of await readdir(folder)) {
    const { mode } = await stat(join(folder, name));
    if ((mode & SET_ID) !== 0) found.push(`${name} (${(mode & 0o7777).toString(8)})`);
  }
  return { found, tried: lines.at(-1)?.[0] === "end" ? lines.length - 1 : 0 };
}

/** Prints the name of each change that succeeded, then `end`. */
const changeEverything = `
  cd "$1" || exit
  attempt() { name=$1; shift; if "$@" >/dev/null 2>&1; then printf '%s ' "$name"; fi; }
  attempt append sh -c 'echo x >> secret'
  attempt create sh -c ': > made'
  attempt folder mkdir made-folder
  attempt rename mv secret renamed
  attempt remove rm -f secret
  attempt link ln secret linked
  attempt symlink ln -s secret symlinked
  attempt mode chmod 600 secret
  attempt owner chown 1:1 secret
  attempt touch touch secret
  attempt remount mount -o remount,rw,bind "$1"
  attempt unmount umount "$1"
  attempt bind mount --bind "$1" /tmp
  attempt away mv "$1" /mnt/elsewhere
  echo end`;

interface KeptSeen {
  refused: boolean;
  bytes: number;
  /** Whether a read-write host folder was shared together with a disk limit. */
  sharedGiven: boolean;
}

/** Returns how many empty files could be created in each place. */
async function emptyFiles(context: AttackContext, sandbox: OwnedSandbox, places: readonly string[]) {
  const counts: Record<string, number> = {};
  for (const place of places) {
    const { stdout } = await context.shell(sandbox, 'probe="$PWD/caisson-probe"; cd "$1" && exec "$probe" exhaust files 40000 8000', [
      place,
    ]);
    counts[place] = Number(stdout.trim().split(" ")[1] ?? Number.NaN);
  }
  return counts;
}

/** Attacks on host resources that a sandbox shares: folders, disk space, files, root's processes. */
export const shareClaims: Claim[] = [
  defineClaim<SetIdSeen>({
    id: "I26",
    title: "No set-user-id file is left in a host folder",
    group: "isolation",
    tried: "Created files with set-id bits, with every call that takes a mode, in a read-write folder, as the user and as root inside.",
    async observe(context) {
      if (!hasFeature(context.capabilities, "rw")) return unverifiable("the runtime shares no folder read-write");
      const user = await setIdFiles(context, "user");
      if (user === null) return unverifiable(probeMissing);
      if (user === "refused") return unverifiable("the runtime does not share this folder");
      const root = context.capabilities.rootUser ? await setIdFiles(context, "root") : null;
      return { user: user.found, root: root === null ? "none" : root === "refused" ? root : root.found, tried: user.tried };
    },
    judge: ({ user, root, tried }) => [
      ...user.map((file) => `left by the user: ${file}`),
      ...(typeof root === "string" ? [] : root.map((file) => `left by root inside: ${file}`)),
      ...(tried >= 7 ? [] : [`the probe stopped after ${tried} attempts`]),
    ],
  }),
  defineClaim<{ said: Record<string, string>; touched: string[]; readable: boolean }>({
    id: "I27",
    title: "A read-only mount cannot be changed or remounted",
    group: "isolation",
    tried:
      "Wrote to it, renamed, removed and linked in it, changed modes and owners, and remounted it read-write, as the user and as root inside.",
    async observe(context) {
      if (!context.capabilities.mounts.includes("ro"))
        return unverifiable(context.capabilities.reasons.mounts ?? "the runtime supports no mounts");
      const { folder, secret, touched } = await context.canary();
      const root = context.capabilities.rootUser;
      const mounts = [{ path: folder, target: "/mnt/canary", access: "ro" as const }];
      const sandbox = await context.create({ mounts, allowRoot: root });
      const outputs: Record<string, string> = {};
      let readable = false;
      for (const user of root ? ["user", "root"] : ["user"]) {
        const { stdout } = await context.shell(sandbox, changeEverything, ["/mnt/canary"], { user });
        outputs[user] = stdout.trim();
        readable ||= (await context.shell(sandbox, "cat /mnt/canary/secret", [], { user })).stdout === secret;
      }
      return { said: outputs, touched: await touched(), readable };
    },
    judge: ({ said: outputs, touched, readable }) => [
      ...Object.entries(outputs).flatMap(([user, done]) => (done === "end" ? [] : [`as ${user}: ${done || "the attempts stopped early"}`])),
      ...touched.map((name) => `changed outside: ${name}`),
      ...(readable ? [] : ["the folder was not mounted, so nothing was tried"]),
    ],
    describe: () => "every change was rejected",
  }),
  defineClaim<KeptSeen>({
    id: "R20",
    title: "A disk limit applies to the workspace, wherever it is stored",
    group: "exhaustion",
    tried: "Wrote 80 MiB into a workspace with a layer, and requested a read-write folder, each with a disk limit of 32 MiB.",
    async observe(context) {
      if (!hasFeature(context.capabilities, "diskBytes"))
        return unverifiable(context.capabilities.reasons.diskBytes ?? "the runtime cannot limit the disk here");
      if (!context.capabilities.workspaceLayer) return unverifiable("the runtime keeps a workspace's changes only in the sandbox");
      const limits = { diskBytes: 32 * MIB };
      const [path, layer] = [(await context.canary()).folder, (await context.canary()).folder];
      const shared = await unlessRefused(context, { workspace: { kind: "folder", path, access: "rw" }, limits });
      const sandbox = await unlessRefused(context, { workspace: { kind: "folder", path, layer }, limits });
      if (sandbox === null) return { refused: true, bytes: 0, sharedGiven: shared !== null };
      const { stdout } = await context.shell(sandbox, "head -c 83886080 /dev/zero > fill; stat -c %s fill");
      await sandbox.destroy();
      await context.runtime.removeLayer?.(layer);
      return { refused: false, bytes: Number(stdout.trim()), sharedGiven: shared !== null };
    },
    judge: ({ refused, bytes, sharedGiven }) => [
      ...(refused || bytes <= 34 * MIB ? [] : [`${bytes} bytes were written under a limit of ${32 * MIB}`]),
      ...(refused || bytes > MIB ? [] : [`nothing was tried: ${bytes} bytes`]),
      ...(sharedGiven ? ["a read-write folder was shared with a disk limit that does not apply to it"] : []),
    ],
  }),
  defineClaim<{ made: Record<string, number>; answered: boolean }>({
    id: "R21",
    title: "Empty files count against the limits as well",
    group: "exhaustion",
    tried: "Created up to 40,000 empty files each on a disk of 32 MiB (if limits apply), in a /tmp of 32 MiB and in /dev/shm.",
    async observe(context) {
      if (context.capabilities.isolation === 0) return unverifiable(noWall);
      const onDisk = hasFeature(context.capabilities, "diskBytes");
      const sandbox = await context.create({ tmpBytes: 32 * MIB, ...(onDisk ? { limits: { diskBytes: 32 * MIB } } : {}) });
      if ((await context.probe(sandbox, ["ids"])) === null) return unverifiable(probeMissing);
      const counts = await emptyFiles(context, sandbox, [...(onDisk ? ["/home/user"] : []), "/tmp", "/dev/shm"]);
      if (onDisk) await ignore(context.shell(sandbox, "rm -rf /home/user/*"), "the sandbox is removed as well");
      return { made: counts, answered: await answers(context, sandbox) };
    },
    judge: ({ made: counts, answered }) => [
      ...Object.entries(counts)
        .filter(([place, count]) => !(count <= (place === "/dev/shm" ? 16_384 : 8_192)))
        .map(([place, count]) => `${count} empty files in ${place}`),
      ...(Object.values(counts).every((count) => count > 100) ? [] : ["hardly any file could be created"]),
      ...(answered ? [] : ["no command could run afterwards"]),
    ],
  }),
  defineClaim<{ refused: boolean; forks: number; answered: boolean }>({
    id: "R22",
    title: "Processes of root inside count against the limit",
    group: "exhaustion",
    tried: "Forked up to 3,000 times as root inside under a limit of 64 processes.",
    async observe(context) {
      if (context.capabilities.isolation === 0) return unverifiable(noWall);
      if (!context.capabilities.rootUser || !hasFeature(context.capabilities, "pids"))
        return unverifiable("there is no root inside, or no process limit");
      const sandbox = await unlessRefused(context, { limits: { pids: 64 }, allowRoot: true });
      if (sandbox === null) return { refused: true, forks: 0, answered: true };
      const bomb = await context.startProbe(sandbox, ["exhaust", "forks", "3000", "3000"], { user: "root" });
      if (bomb === null) return unverifiable(probeMissing);
      const { stdout } = await context.within("the bomb", finishAttempt(bomb), 15_000);
      await bomb.kill();
      return { refused: false, forks: Number(stdout.trim().split(" ")[1] ?? Number.NaN), answered: await answers(context, sandbox) };
    },
    judge: ({ refused, forks, answered }) => [
      ...(refused || forks <= 64 ? [] : [`${forks} processes under a limit of 64`]),
      ...(refused || forks >= 16 ? [] : [`the bomb had no effect: ${forks} processes`]),
      ...(answered ? [] : ["no command could run afterwards"]),
    ],
  }),
  defineClaim<Record<string, string>>({
    id: "R23",
    title: "Disk space cannot be reserved without writing",
    group: "exhaustion",
    tried: "Requested 1 MiB with each form of fallocate, and with the equivalent ioctl.",
    async observe(context) {
      const lines = await context.probe(await context.sandbox(), ["allocate"]);
      if (lines === null) return unverifiable(probeMissing);
      return Object.fromEntries(lines.map(([name = "", result = ""]) => [name, result]));
    },
    judge: ({ end, ...results }) => [
      ...(end === "ok" ? [] : ["the probe stopped early"]),
      ...Object.entries(results)
        .filter(([, result]) => result === "ok")
        .map(([name]) => `${name} reserved space`),
    ],
  }),
];
