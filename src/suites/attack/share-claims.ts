import { chown, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxSpecInput } from "../../contract/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { hasFeature } from "../conformance/context.ts";
import { type AttackContext, finishAttempt, probeMissing } from "./attack-context.ts";
import { type Claim, defineClaim, unverifiable } from "./claim.ts";
import { answers } from "./isolation-claims.ts";

const MIB = 1024 * 1024;
/** Anybody's but root's: not every runtime shares a folder of root's. */
const FOLDER_OWNER = 12_345;
const SET_ID = 0o6000;
const noWall = "without a wall it is the machine itself that would be exhausted";

/** A sandbox as asked for, or null where the runtime refuses it, which is as good as holding. */
async function unlessRefused(context: AttackContext, spec: SandboxSpecInput): Promise<OwnedSandbox | null> {
  return context.create(spec).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "unsupported") return null;
    throw error;
  });
}

interface SetIdSeen {
  /** Files with a set-id bit that lie in the folder on the host, by who made them. */
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

/** Names each change that succeeded, then says `end`. */
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
  /** Whether a folder of the host's that is written to directly was given with a disk limit. */
  sharedGiven: boolean;
}

/** How many empty files could be made in each place. */
async function emptyFiles(context: AttackContext, sandbox: OwnedSandbox, places: readonly string[]) {
  const made: Record<string, number> = {};
  for (const place of places) {
    const { stdout } = await context.shell(sandbox, 'probe="$PWD/caisson-probe"; cd "$1" && exec "$probe" exhaust files 40000 8000', [
      place,
    ]);
    made[place] = Number(stdout.trim().split(" ")[1] ?? Number.NaN);
  }
  return made;
}

/** What of the host's a sandbox shares, and how much of it it may take: folders, the disk, files, processes of root. */
export const shareClaims: Claim[] = [
  defineClaim<SetIdSeen>({
    id: "I26",
    title: "No set-user-id file is left in a folder of the host's",
    group: "isolation",
    tried: "Made files with set-id bits, by every call that takes a mode, in a folder given read-write, as the user and as root inside.",
    async observe(context) {
      if (!hasFeature(context.capabilities, "rw")) return unverifiable("the runtime gives no folder read-write");
      const user = await setIdFiles(context, "user");
      if (user === null) return unverifiable(probeMissing);
      if (user === "refused") return unverifiable("the runtime gives this folder to nobody");
      const root = context.capabilities.rootUser ? await setIdFiles(context, "root") : null;
      return { user: user.found, root: root === null ? "none" : root === "refused" ? root : root.found, tried: user.tried };
    },
    judge: ({ user, root, tried }) => [
      ...user.map((file) => `left by the user: ${file}`),
      ...(typeof root === "string" ? [] : root.map((file) => `left by root inside: ${file}`)),
      ...(tried >= 7 ? [] : [`the probe broke off after ${tried} attempts`]),
    ],
  }),
  defineClaim<{ said: Record<string, string>; touched: string[]; readable: boolean }>({
    id: "I27",
    title: "A folder that is mounted read-only cannot be changed, nor mounted anew",
    group: "isolation",
    tried:
      "Wrote to it, renamed, removed and linked in it, changed modes and owners, and remounted it read-write, as the user and as root inside.",
    async observe(context) {
      if (!context.capabilities.mounts.includes("ro"))
        return unverifiable(context.capabilities.reasons.mounts ?? "the runtime mounts none");
      const { folder, secret, touched } = await context.canary();
      const root = context.capabilities.rootUser;
      const mounts = [{ path: folder, target: "/mnt/canary", access: "ro" as const }];
      const sandbox = await context.create({ mounts, allowRoot: root });
      const said: Record<string, string> = {};
      let readable = false;
      for (const user of root ? ["user", "root"] : ["user"]) {
        const { stdout } = await context.shell(sandbox, changeEverything, ["/mnt/canary"], { user });
        said[user] = stdout.trim();
        readable ||= (await context.shell(sandbox, "cat /mnt/canary/secret", [], { user })).stdout === secret;
      }
      return { said, touched: await touched(), readable };
    },
    judge: ({ said, touched, readable }) => [
      ...Object.entries(said).flatMap(([user, done]) => (done === "end" ? [] : [`as ${user}: ${done || "the attempts broke off"}`])),
      ...touched.map((name) => `changed outside: ${name}`),
      ...(readable ? [] : ["the folder was not there, so that nothing was tried"]),
    ],
    describe: () => "every change was refused",
  }),
  defineClaim<KeptSeen>({
    id: "R20",
    title: "A disk limit holds for the workspace, wherever it lies",
    group: "exhaustion",
    tried: "Wrote 80 MiB into a workspace whose changes are kept, and asked for a folder read-write, each with a disk of 32 MiB.",
    async observe(context) {
      if (!hasFeature(context.capabilities, "diskBytes"))
        return unverifiable(context.capabilities.reasons.diskBytes ?? "the runtime cannot limit the disk here");
      if (!context.capabilities.workspaceLayer) return unverifiable("the runtime keeps a workspace's changes in the sandbox alone");
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
      ...(sharedGiven ? ["a folder was given read-write with a disk limit that does not hold there"] : []),
    ],
  }),
  defineClaim<{ made: Record<string, number>; answered: boolean }>({
    id: "R21",
    title: "Files without content run out as well",
    group: "exhaustion",
    tried: "Made up to 40,000 empty files each on a disk of 32 MiB where there is one, in a /tmp of 32 MiB and in /dev/shm.",
    async observe(context) {
      if (context.capabilities.isolation === 0) return unverifiable(noWall);
      const onDisk = hasFeature(context.capabilities, "diskBytes");
      const sandbox = await context.create({ tmpBytes: 32 * MIB, ...(onDisk ? { limits: { diskBytes: 32 * MIB } } : {}) });
      if ((await context.probe(sandbox, ["ids"])) === null) return unverifiable(probeMissing);
      const made = await emptyFiles(context, sandbox, [...(onDisk ? ["/home/user"] : []), "/tmp", "/dev/shm"]);
      if (onDisk) await context.shell(sandbox, "rm -rf /home/user/*").catch(() => undefined);
      return { made, answered: await answers(context, sandbox) };
    },
    judge: ({ made, answered }) => [
      ...Object.entries(made)
        .filter(([place, count]) => !(count <= (place === "/dev/shm" ? 16_384 : 8_192)))
        .map(([place, count]) => `${count} empty files in ${place}`),
      ...(Object.values(made).every((count) => count > 100) ? [] : ["hardly a file could be made"]),
      ...(answered ? [] : ["no command could be run afterwards"]),
    ],
  }),
  defineClaim<{ refused: boolean; forks: number; answered: boolean }>({
    id: "R22",
    title: "Processes of root inside are held to the limit",
    group: "exhaustion",
    tried: "Forked up to 3,000 times as root inside under a limit of 64 processes.",
    async observe(context) {
      if (context.capabilities.isolation === 0) return unverifiable(noWall);
      if (!context.capabilities.rootUser || !hasFeature(context.capabilities, "pids"))
        return unverifiable("there is no root inside, or no limit");
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
      ...(refused || forks >= 16 ? [] : [`the bomb did not go off: ${forks} processes`]),
      ...(answered ? [] : ["no command could be run afterwards"]),
    ],
  }),
  defineClaim<Record<string, string>>({
    id: "R23",
    title: "Room on the disk is taken by writing, never at once",
    group: "exhaustion",
    tried: "Asked for 1 MiB by each form of fallocate, and by the ioctl that does the same.",
    async observe(context) {
      const lines = await context.probe(await context.sandbox(), ["allocate"]);
      if (lines === null) return unverifiable(probeMissing);
      return Object.fromEntries(lines.map(([name = "", result = ""]) => [name, result]));
    },
    judge: ({ end, ...results }) => [
      ...(end === "ok" ? [] : ["the probe broke off"]),
      ...Object.entries(results)
        .filter(([, result]) => result === "ok")
        .map(([name]) => `${name} took the room`),
    ],
  }),
];
