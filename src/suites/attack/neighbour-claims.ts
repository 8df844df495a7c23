import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { ignoring } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { type AttackContext, probeMissing } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, notTriedAsDeclared, unverifiable } from "./claim.ts";

/** Few enough to be harmless if there is no limit. */
const TERMINALS_TRIED = 200;
/** More than any default installation allows a user. */
const INSTANCES_TRIED = 4_096;
const HOLD_MS = 20_000;

/** What one sandbox may see of another and take from it. */
export const neighbourClaims: Claim[] = [
  defineClaim<{ shared: string[]; names: string[] }>({
    id: "I24",
    title: "A shared folder that contains Caisson's state reveals nothing of it",
    group: "isolation",
    tried: "Shared the folder above the state folder, and listed the state folder in it, as the user and as root inside.",
    observe: (context) => observeStateFolder(context, "workspace"),
    judge: ({ shared, names }) => [...names.map((name) => `seen inside: ${name}`), ...(shared.length > 0 ? [] : ["no folder was shared"])],
    describe: ({ shared }) => `nothing was seen (${shared.join(", ")})`,
  }),
  defineClaim<{ shared: string[]; names: string[] }>({
    id: "I28",
    title: "A mounted folder that contains Caisson's state reveals nothing of it",
    group: "isolation",
    tried: "Mounted the folder above the state folder in every mode, and listed the state folder in it, as the user and as root inside.",
    observe: (context) => observeStateFolder(context, "mount"),
    judge: ({ shared, names }) => [...names.map((name) => `seen inside: ${name}`), ...(shared.length > 0 ? [] : ["no folder was mounted"])],
    describe: ({ shared }) => `nothing was seen (${shared.join(", ")})`,
  }),
  defineClaim<{ limits: Record<string, string[][]> }>({
    id: "I25",
    title: "A crash inside does not start the machine's core dump handler",
    group: "isolation",
    tried: "Read the core size limit, changed it with setrlimit and prlimit, and read it again, as the user and as root inside.",
    async observe(context) {
      const limits: Record<string, string[][]> = {};
      for (const { sandbox, user } of await everybody(context)) {
        const lines = await context.probe(sandbox, ["core"], { user });
        if (lines === null) return unverifiable(probeMissing);
        limits[user] = lines;
      }
      return { limits };
    },
    // 1 is the only limit at which the kernel starts no core dump handler through a pipe.
    judge: ({ limits }) =>
      Object.entries(limits).flatMap(([user, lines]) => {
        const wrong = lines.filter(([, soft, hard]) => soft !== "1" || hard !== "1");
        return [
          ...(lines.length === 2 ? [] : [`the probe stopped early as ${user}`]),
          ...wrong.map(([when, soft, hard]) => `the limit ${when} for ${user} is ${soft} (maximum ${hard})`),
        ];
      }),
    describe: () => "the limit is 1 and cannot be changed",
  }),
  defineClaim<{ made: number; another: boolean }>({
    id: "R16",
    title: "One sandbox cannot take all terminals",
    group: "exhaustion",
    tried: `Opened ${TERMINALS_TRIED} terminals in a sandbox and kept them open, and opened one in another.`,
    async observe(context) {
      const reason = context.capabilities.reasons.terminals;
      if (reason !== undefined) return notTriedAsDeclared(reason);
      return whileHeld(context, { what: "ptys", count: TERMINALS_TRIED });
    },
    judge: ({ made: count, another }) => [
      ...(count < TERMINALS_TRIED ? [] : [`no limit: ${count} terminals`]),
      ...(another ? [] : ["another sandbox got none"]),
    ],
  }),
  defineClaim<{ made: number; another: boolean; host: boolean }>({
    id: "R17",
    title: "One sandbox cannot take all of a user's inotify instances",
    group: "exhaustion",
    tried: `Created ${INSTANCES_TRIED} inotify instances in a sandbox and kept them, and created one in another and one on the host.`,
    observe: (context) => whileHeld(context, { what: "instances", count: INSTANCES_TRIED }),
    judge: ({ another, host }) => [
      ...(another ? [] : ["another sandbox got none"]),
      ...(host ? [] : ["the user who runs the sandboxes got none"]),
    ],
  }),
];

interface Held {
  made: number;
  another: boolean;
  host: boolean;
}

/** Returns what others get while one sandbox holds as many of a resource as it can. */
async function whileHeld(context: AttackContext, options: { what: string; count: number }): Promise<Held | NotTried> {
  if (context.capabilities.isolation === 0) return unverifiable("without a wall, this would exhaust the machine itself");
  const { what, count } = options;
  const taker = await context.create();
  const other = await context.create();
  const holding = await context.startProbe(taker, ["hold", what, String(count), String(HOLD_MS)], { stdin: "pipe" });
  if (holding === null) return unverifiable(probeMissing);
  let output = "";
  for await (const { data } of holding.output) {
    output += Buffer.from(data).toString("latin1");
    if (!output.includes("\n")) continue;
    const [line] = (await context.probe(other, ["exhaust", what, "1", "1000"])) ?? [];
    const host = canWatch();
    await holding.kill();
    return { made: Number(output.split(" ")[1]), another: line?.[2] === "ok", host };
  }
  throw new Error("the probe ended early");
}

function canWatch(): boolean {
  const watcher = ignoring("the user's watches are exhausted", () => watch("/"));
  watcher?.close();
  return watcher !== undefined;
}

async function everybody(context: AttackContext): Promise<{ sandbox: OwnedSandbox; user: string }[]> {
  const root = await context.rootSandbox();
  return [{ sandbox: await context.sandbox(), user: "user" }, ...(root === null ? [] : [{ sandbox: root, user: "root" }])];
}

async function observeStateFolder(
  context: AttackContext,
  as: "workspace" | "mount",
): Promise<{ shared: string[]; names: string[] } | NotTried> {
  const { workspaceAccess, mounts, workspaceLayer, rootUser } = context.capabilities;
  // If an overlay is a copy, everything beside the state folder would be copied.
  const accesses = (as === "workspace" ? workspaceAccess : mounts).filter((access) => access !== "overlay" || workspaceLayer);
  const shared: string[] = [];
  const names: string[] = [];
  // Makes sure that there is a neighbor to see.
  await context.sandbox();
  for (const access of accesses) {
    const folder = { path: dirname(context.stateDir), access };
    const target = as === "workspace" ? "." : "/mnt/shared";
    try {
      const sandbox = await context.create({
        ...(as === "workspace" ? { workspace: { kind: "folder", ...folder } } : { mounts: [{ ...folder, target }] }),
        allowRoot: rootUser && access !== "rw",
      });
      shared.push(access);
      for (const user of rootUser && access !== "rw" ? ["user", "root"] : ["user"]) {
        const { stdout } = await context.shell(
          sandbox,
          'find "$1" -maxdepth 2 -mindepth 1 | head -5',
          [`${target}/${basename(context.stateDir)}`],
          {
            user,
          },
        );
        names.push(...stdout.split("\n").filter((name) => name !== ""));
      }
      await sandbox.destroy();
    } catch (error) {
      // A folder that the runtime refuses to share reveals nothing either.
      if (!(error instanceof CaissonError) || !["denied", "unsupported"].includes(error.code)) throw error;
    }
  }
  return shared.length === 0 ? unverifiable("the parent of the state folder cannot be shared here") : { shared, names };
}
