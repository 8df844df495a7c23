import { readdir, readFile } from "node:fs/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { ifErrno, UNREACHABLE } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { AttackContext } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";

/** What happens to sandboxes when a process is killed or stopped at the wrong moment. */
export const faultClaims: Claim[] = [
  defineClaim<{ outcome: string; closed: string; next: string; left: boolean }>({
    id: "D02",
    title: "A killed guest is `lost` instead of hanging",
    group: "faults",
    tried:
      "Killed process 1 of a sandbox from the host while a command ran, then requested its outcome and another command, and destroyed the sandbox.",
    observe: observeKilledGuest,
    judge: ({ outcome, closed, next, left }) => [
      ...(outcome === "lost" ? [] : [`the command's outcome is ${outcome}`]),
      ...(closed === "lost" ? [] : [`the sandbox reports ${closed}`]),
      ...(next === "lost" ? [] : [`the next command: ${next}`]),
      ...(left ? ["it is still listed after destroy"] : []),
    ],
  }),
  defineClaim<{ aborted: number; finished: number; listed: string[]; mounts: number }>({
    id: "D04",
    title: "Aborted creates leave nothing behind",
    group: "faults",
    tried:
      "Aborted creates at a dozen moments, swept, and compared the list of sandboxes and the mounts of the state folder with those before.",
    observe: observeAbortedCreates,
    judge: ({ listed, mounts, aborted }) => [
      ...listed.map((id) => `left: ${id}`),
      ...(mounts === 0 ? [] : [`${mounts} more mounts than before`]),
      ...(aborted > 0 ? [] : ["no create was aborted"]),
    ],
  }),
  defineClaim<{ files: string; command: string; after: string }>({
    id: "D05",
    title: "A program that stops every process it can reach does not block file requests",
    group: "faults",
    tried:
      "Ran `kill -STOP -1` in a loop; at the same time wrote and read a file and ran a command with a time limit; then ended the loop and ran another.",
    observe: observeStopper,
    judge: ({ files, command, after }) => [
      ...(files === "read back" ? [] : [`the file: ${files}`]),
      // The command has the same rights as the stopper and may be stopped; the guest enforces its time limit.
      ...(command === "timedOut" || command === "exited" ? [] : [`the command with a time limit: ${command}`]),
      ...(after === "exited" ? [] : [`the command afterwards: ${after}`]),
    ],
  }),
  defineClaim<{ file: string; command: string; after: string }>({
    id: "D06",
    title: "A stopped guest is detected and reported as stopped",
    group: "faults",
    tried: "Stopped process 1 of a sandbox from the host (SIGSTOP), requested a file and a command, and resumed it.",
    waits: true,
    observe: observeStoppedGuest,
    judge: ({ file, command, after }) => [
      ...(file === "timeout stopped" ? [] : [`the file request: ${file}`]),
      ...(command === "timeout stopped" ? [] : [`the command: ${command}`]),
      ...(after === "exited" ? [] : [`the command afterwards: ${after}`]),
    ],
  }),
];

/** Must not run without a wall, where the program could reach the whole machine. */
async function observeStopper(context: AttackContext) {
  if (context.capabilities.isolation === 0) return unverifiable("without a wall, this would stop the machine itself");
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
    return unverifiable("the runtime has no process namespace in which to identify the first process");
  const sandbox = await context.create();
  const marker = `6${process.pid}${Date.now() % 1000}`;
  const running = await context.startShell(sandbox, 'exec sleep "$1"', [marker]);
  running.discardOutput();
  const guest = await context.within("finding the guest", findGuest(marker));
  if (guest === null) return unverifiable("this user cannot see the sandbox's first process on the host");
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

/** Returns the code of a call's error, and how the guest failed to answer. */
async function fateOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "succeeded",
    (error: unknown) => (error instanceof CaissonError ? [error.code, error.details?.guest].filter(Boolean).join(" ") : String(error)),
  );
}

async function observeKilledGuest(context: AttackContext) {
  if (context.capabilities.isolation === 0)
    return unverifiable("the runtime has no process namespace in which to identify the first process");
  const sandbox = await context.create();
  const marker = `5${process.pid}${Date.now() % 1000}`;
  const running = await context.startShell(sandbox, 'exec sleep "$1"', [marker]);
  running.discardOutput();
  const guest = await context.within("finding the guest", findGuest(marker));
  if (guest === null) return unverifiable("this user cannot see the sandbox's first process on the host");
  process.kill(guest, "SIGKILL");
  const outcome = (await context.within("the command's outcome", running.ended, 10_000)).kind;
  const { why } = await context.within("the sandbox's end", sandbox.closed, 10_000);
  const next = await codeOf(context.within("the next command", sandbox.spawn({ argv: ["true"] }), 10_000));
  await context.within("destroying", sandbox.destroy());
  const left = (await context.runtime.list()).some((each) => each.id === sandbox.id);
  return { outcome, closed: why, next, left };
}

/**
 * Returns the host's PID of process 1 in the marked sleeper's namespace. Only a process that is 1 in a namespace below
 * ours counts, so the result is never a process of the host.
 */
async function findGuest(marker: string): Promise<number | null> {
  for (let tries = 0; tries < 50; tries += 1) {
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const command = await ifErrno(readFile(`/proc/${name}/cmdline`, "utf8"), [...UNREACHABLE, "ESRCH"], "");
      if (!command.split("\0").includes(marker) || !command.startsWith("sleep\0")) continue;
      return firstOfNamespace(Number(name));
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return null;
}

async function firstOfNamespace(pid: number): Promise<number | null> {
  for (let current = pid, depth = 0; current > 1 && depth < 64; depth += 1) {
    const status = await ifErrno(readFile(`/proc/${current}/status`, "utf8"), [...UNREACHABLE, "ESRCH"], "");
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
      const sandbox = await context.runtime.create(context.configOf(), { signal: aborting.signal });
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

/** Counts the mounts of the state folder; unrelated ones change at any time. */
async function mountCount(stateDir: string): Promise<number> {
  const mounts = (await ifErrno(readFile("/proc/self/mountinfo", "utf8"), UNREACHABLE, "")).split("\n");
  return mounts.filter((line) => line.includes(stateDir)).length;
}
