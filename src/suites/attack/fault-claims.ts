import { readdir, readFile } from "node:fs/promises";
import { CaissonError } from "../../contract/error.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { AttackContext } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";

/** What becomes of sandboxes when something is killed at the wrong moment. */
export const faultClaims: Claim[] = [
  defineClaim<{ outcome: string; closed: string; next: string; left: boolean }>({
    id: "D02",
    title: "A killed guest is `lost`, not a hang",
    group: "faults",
    tried:
      "Killed process 1 of a sandbox from the host while a command ran, then asked for its outcome, for another command, and destroyed it.",
    observe: observeKilledGuest,
    judge: ({ outcome, closed, next, left }) => [
      ...(outcome === "lost" ? [] : [`the command's outcome is ${outcome}`]),
      ...(closed === "lost" ? [] : [`the sandbox says ${closed}`]),
      ...(next === "lost" ? [] : [`the next command: ${next}`]),
      ...(left ? ["it is still listed after destroy"] : []),
    ],
  }),
  defineClaim<{ aborted: number; finished: number; listed: string[]; mounts: number }>({
    id: "D04",
    title: "Creates that are broken off leave nothing",
    group: "faults",
    tried:
      "Broke off creates at a dozen moments, swept, and compared the list of sandboxes and the mounts of the state folder with those before.",
    observe: observeAbortedCreates,
    judge: ({ listed, mounts, aborted }) => [
      ...listed.map((id) => `left: ${id}`),
      ...(mounts === 0 ? [] : [`${mounts} mounts more than before`]),
      ...(aborted > 0 ? [] : ["no create was broken off"]),
    ],
  }),
  defineClaim<{ files: string; command: string; after: string }>({
    id: "D05",
    title: "A program that stops all it can reach holds up no file request",
    group: "faults",
    tried:
      "Ran `kill -STOP -1` in a loop, and meanwhile wrote and read a file and ran a command with a time limit; then ended the loop and ran another.",
    observe: observeStopper,
    judge: ({ files, command, after }) => [
      ...(files === "read back" ? [] : [`the file: ${files}`]),
      // It is the stopper's equal, and may be stopped; its time limit is the guest's matter.
      ...(command === "timedOut" || command === "exited" ? [] : [`the command with a time limit: ${command}`]),
      ...(after === "exited" ? [] : [`the command afterwards: ${after}`]),
    ],
  }),
  defineClaim<{ file: string; command: string; after: string }>({
    id: "D06",
    title: "A guest that was stopped is noticed, and told as that",
    group: "faults",
    tried: "Stopped process 1 of a sandbox from the host (SIGSTOP), asked for a file and for a command, and let it go on.",
    waits: true,
    observe: observeStoppedGuest,
    judge: ({ file, command, after }) => [
      ...(file === "timeout stopped" ? [] : [`the file request: ${file}`]),
      ...(command === "timeout stopped" ? [] : [`the command: ${command}`]),
      ...(after === "exited" ? [] : [`the command afterwards: ${after}`]),
    ],
  }),
];

/** Without a wall, everything that can be reached is the machine. */
async function observeStopper(context: AttackContext) {
  if (context.capabilities.isolation === 0) return unverifiable("without a wall it is the machine itself that would be stopped");
  const sandbox = await context.create();
  const stopper = await context.startShell(sandbox, "echo; while :; do kill -STOP -1; done");
  for await (const _ of stopper.output) break;
  const files = await context.within(
    "a file",
    sandbox.writeFile("stopped", Buffer.from("back")).then(() => readBack(sandbox, "stopped")),
  );
  const limited = await context.within("starting a command", sandbox.spawn({ argv: ["sleep", "0"], timeoutMs: 1_000 }));
  limited.discardOutput();
  const command = (await context.within("a command with a time limit", limited.ended)).kind;
  await context.within("ending the loop", stopper.kill());
  const after = (await context.shell(sandbox, "true")).ended.kind;
  await sandbox.destroy();
  return { files, command, after };
}

async function readBack(sandbox: OwnedSandbox, path: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await sandbox.readFile(path)) pieces.push(piece);
  const text = Buffer.concat(pieces).toString();
  return text === "back" ? "read back" : JSON.stringify(text);
}

async function observeStoppedGuest(context: AttackContext) {
  if (context.capabilities.isolation === 0)
    return unverifiable("the runtime has no process namespace whose first process could be told for sure");
  const sandbox = await context.create();
  const marker = `6${process.pid}${Date.now() % 1000}`;
  const running = await context.startShell(sandbox, 'exec sleep "$1"', [marker]);
  running.discardOutput();
  const guest = await context.within("finding the guest", findGuest(marker));
  if (guest === null) return unverifiable("the sandbox's first process is not among those this user can see on the host");
  process.kill(guest, "SIGSTOP");
  try {
    const [file, command] = await Promise.all([fateOf(sandbox.stat("/")), fateOf(sandbox.spawn({ argv: ["true"] }))]);
    process.kill(guest, "SIGCONT");
    const after = (await context.shell(sandbox, "true")).ended.kind;
    return { file, command, after };
  } finally {
    await sandbox.destroy();
  }
}

/** The code of a call's error, and how the guest failed to answer. */
async function fateOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "succeeded",
    (error: unknown) => (error instanceof CaissonError ? [error.code, error.details?.guest].filter(Boolean).join(" ") : String(error)),
  );
}

async function observeKilledGuest(context: AttackContext) {
  if (context.capabilities.isolation === 0)
    return unverifiable("the runtime has no process namespace whose first process could be told for sure");
  const sandbox = await context.create();
  const marker = `5${process.pid}${Date.now() % 1000}`;
  const running = await context.startShell(sandbox, 'exec sleep "$1"', [marker]);
  running.discardOutput();
  const guest = await context.within("finding the guest", findGuest(marker));
  if (guest === null) return unverifiable("the sandbox's first process is not among those this user can see on the host");
  process.kill(guest, "SIGKILL");
  const outcome = (await context.within("the command's outcome", running.ended, 10_000)).kind;
  const { why } = await context.within("the sandbox's end", sandbox.closed, 10_000);
  const next = await codeOf(context.within("the next command", sandbox.spawn({ argv: ["true"] }), 10_000));
  await context.within("destroying", sandbox.destroy());
  const left = (await context.runtime.list()).some((each) => each.id === sandbox.id);
  return { outcome, closed: why, next, left };
}

/**
 * The host's number of the process that is 1 where the marked sleeper lives. Only a process that is 1 in a namespace
 * below ours counts, so that nothing of the host can ever be meant.
 */
async function findGuest(marker: string): Promise<number | null> {
  for (let tries = 0; tries < 50; tries += 1) {
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const command = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
      if (!command.split("\0").includes(marker) || !command.startsWith("sleep\0")) continue;
      return firstOfNamespace(Number(name));
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return null;
}

async function firstOfNamespace(pid: number): Promise<number | null> {
  for (let current = pid, depth = 0; current > 1 && depth < 64; depth += 1) {
    const status = await readFile(`/proc/${current}/status`, "utf8").catch(() => "");
    const numbers = /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
    if (numbers.length > 1 && numbers.at(-1) === "1") return current;
    current = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0);
  }
  return null;
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "succeeded",
    (error: unknown) => (error instanceof CaissonError ? error.code : String(error)),
  );
}

async function observeAbortedCreates(
  context: AttackContext,
): Promise<{ aborted: number; finished: number; listed: string[]; mounts: number } | NotTried> {
  await context.sandbox();
  const before = new Set((await context.runtime.list()).map((each) => each.id));
  const mountsBefore = await mountCount(context.stateDir);
  let aborted = 0;
  let finished = 0;
  for (const afterMs of [0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 80]) {
    const aborting = new AbortController();
    const timer = setTimeout(() => aborting.abort(), afterMs);
    try {
      const sandbox = await context.runtime.create(context.spec(), { signal: aborting.signal });
      finished += 1;
      await sandbox.destroy();
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "cancelled") throw error;
      aborted += 1;
    } finally {
      clearTimeout(timer);
    }
  }
  await context.runtime.sweep();
  const listed = (await context.runtime.list()).map((each) => each.id).filter((id) => !before.has(id));
  return { aborted, finished, listed, mounts: Math.max(0, (await mountCount(context.stateDir)) - mountsBefore) };
}

/** Mounts that have to do with the state folder; others come and go by themselves. */
async function mountCount(stateDir: string): Promise<number> {
  const mounts = (await readFile("/proc/self/mountinfo", "utf8").catch(() => "")).split("\n");
  return mounts.filter((line) => line.includes(stateDir)).length;
}
