import { CaissonError } from "../../../contract/error/error.ts";
import { failureOf, type LaunchFailure } from "./launch-failure.ts";
import { createLaunchServer, type LauncherProcess, type LauncherProgram, type LauncherWatch, spawnLauncher } from "./launcher-process.ts";

/** A record of a plan: a verb and its fields. No field may contain NUL. */
export type PlanRecord = readonly [verb: string, ...fields: (string | number)[]];

export type LaunchWhat =
  | "run"
  | "attach"
  | "new-root"
  | "namespaces"
  | "remove"
  | "measure"
  | "inside"
  | "mappable"
  | "point"
  | "snapshot"
  | "volume"
  | "merge"
  | "dump";

export interface LaunchOptions {
  what: LaunchWhat;
  /** A function is called after `prepare` is done. */
  plan: readonly PlanRecord[] | (() => readonly PlanRecord[]);
  signal?: AbortSignal | undefined;
  /** Passed to the launcher as descriptors 3, 4, … */
  descriptors?: readonly number[];
  /** Called with the launcher's pid before it receives its plan. A failure ends the launcher. */
  prepare?: ((pid: number) => Promise<void>) | undefined;
  /** Called with each line that the launcher writes, as it arrives. */
  onLine?: (line: string) => void;
  /**
   * The line that completes the launch without waiting for the launcher's exit: with all its mounts, that takes longer
   * than its work.
   */
  lastLine?: RegExp;
  timeoutMs?: number;
}

/** Starts a launch. A function type, so that tests can inspect plans without starting anything. */
export type Launch = (options: LaunchOptions) => Promise<string[]>;

/** What a launch for sandboxes needs: the launcher, and the ids of sandboxes on this host. */
interface LaunchAs {
  launch: Launch;
  identity(): { plan: readonly PlanRecord[] };
}

/** The longest that a launch may take: it starts a process, or copies a sandbox's files. */
const LAUNCH_TIMEOUT_MS = 60_000;
const OUTPUT_BYTES_MAX = 64 * 1024;

export function encodePlan(plan: readonly PlanRecord[]): Buffer {
  const fields = plan.flatMap((record) => record.map(String));
  for (const field of fields) {
    if (field.includes("\0")) throw new CaissonError("invalid", "a path or value must not contain a NUL byte");
  }
  return Buffer.from(fields.map((field) => `${field}\0`).join(""));
}

/**
 * Returns a function that runs `caisson-guest launch`, which does what Node cannot. It resolves with the lines that the
 * launcher wrote. Failures are translated here and nowhere else.
 */
export function createLauncher(program: LauncherProgram): Launch {
  const serve = createLaunchServer(program);
  const start: StartLauncher = ({ what, descriptors = [] }, watch) => {
    const holds = what === "namespaces";
    // Only a child of this process can receive its descriptors.
    return holds || descriptors.length > 0 ? spawnLauncher(program, what, { descriptors, holds, watch }) : serve(what, watch);
  };
  return (launch) => runLauncher(start, program.guestPath, launch);
}

/**
 * Runs a program with the host's files, as root of the sandboxes' user namespace, or as the host's root if we are root.
 * Returns the lines that it wrote. Rejects if it fails, with its `status` in the details.
 */
export function runInside(
  { launch, identity }: LaunchAs,
  argv: readonly string[],
  options: { timeoutMs?: number; signal?: AbortSignal | undefined } = {},
): Promise<string[]> {
  const plan = [...identity().plan, ...argv.map((argument) => ["argument", argument] as const)];
  return launch({ what: "inside", plan, ...options });
}

/** Removing millions of files takes long. */
const REMOVE_TIMEOUT_MS = 60 * 60_000;

/** Removes trees that an agent wrote. The launcher does so as their owner, and never follows a link. */
export async function removeFiles({ launch, identity }: LaunchAs, paths: readonly string[]): Promise<void> {
  if (paths.length > 0) await launch({ what: "remove", plan: [...identity().plan, ...removals(paths)], timeoutMs: REMOVE_TIMEOUT_MS });
}

/**
 * Like `removeFiles`, but removes the files only after `ready` resolves; the launcher starts in the meantime. If
 * `ready` rejects, removes nothing and rejects with the same error.
 */
export async function removeFilesWhen(
  { launch, identity }: LaunchAs,
  { ready, paths }: { ready: Promise<void>; paths: () => readonly string[] },
): Promise<void> {
  const removing = launch({
    what: "remove",
    plan: () => [...identity().plan, ...removals(paths())],
    prepare: () => ready,
    timeoutMs: REMOVE_TIMEOUT_MS,
  });
  // Waits for `ready` even if the launcher fails.
  const [isReady, isRemoved] = await Promise.allSettled([ready, removing]);
  for (const outcome of [isReady, isRemoved]) if (outcome.status === "rejected") throw outcome.reason;
}

const removals = (paths: readonly string[]) => paths.map((path) => ["remove", path] as const);

type StartLauncher = (launch: LaunchOptions, watch: LauncherWatch) => LauncherProcess;

function runLauncher(start: StartLauncher, guestPath: string, launch: LaunchOptions): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  if (launch.signal?.aborted) return Promise.reject(new CaissonError("cancelled", `launch ${launch.what} was cancelled`));
  const { plan } = launch;
  // An invalid plan is refused before anything starts.
  const known = typeof plan === "function" ? null : encodePlan(plan);
  const input = () => known ?? encodePlan(typeof plan === "function" ? plan() : plan);
  let text = "";
  let complaint = "";
  let seen = 0;
  const launcher = start(launch, {
    onOutput(chunk) {
      if (text.length < OUTPUT_BYTES_MAX) text += chunk;
      for (let stop = text.indexOf("\n", seen); stop >= 0; stop = text.indexOf("\n", seen)) {
        const line = text.slice(seen, stop);
        launch.onLine?.(line);
        if (launch.lastLine?.test(line)) {
          launch.signal?.removeEventListener("abort", abort);
          resolve(text.slice(0, stop).split("\n"));
        }
        seen = stop + 1;
        // While `onLine` handled the line, the caller took over the namespaces that the launcher holds.
        launcher.detach();
      }
    },
    onComplaint(chunk) {
      if (complaint.length < OUTPUT_BYTES_MAX) complaint += chunk;
    },
    onFailure(cause) {
      clearTimeout(timer);
      reject(new CaissonError("unavailable", `${guestPath} cannot be started`, { hint: "Run `make -C guest` or `scripts/setup`.", cause }));
    },
    onEnd(status) {
      clearTimeout(timer);
      launch.signal?.removeEventListener("abort", abort);
      const lines = text.split("\n").filter((line) => line !== "");
      if (status === 0) return resolve(lines);
      if (launch.signal?.aborted) return reject(new CaissonError("cancelled", `launch ${launch.what} was cancelled`));
      reject(failureOf({ ...parseFailure(launch.what, lines, complaint), status }));
    },
  });
  const abort = () => launcher.kill();
  const timer = setTimeout(abort, launch.timeoutMs ?? LAUNCH_TIMEOUT_MS);
  launch.signal?.addEventListener("abort", abort, { once: true });
  const { prepare } = launch;
  if (prepare === undefined) launcher.give(input());
  else {
    launcher.whenStarted((pid) => {
      prepare(pid)
        .then(() => launcher.give(input()))
        .catch((error: unknown) => {
          reject(error);
          launcher.kill();
        });
    });
  }
  return promise;
}

const failureLine = /^fail (\S+) (\d+) (.*)$/;

function parseFailure(what: string, lines: readonly string[], complaint: string): LaunchFailure {
  for (const line of lines) {
    const [, step, errno, text] = failureLine.exec(line) ?? [];
    if (step !== undefined) return { what, step, errno: Number(errno), text: [text, complaint.trim()].filter(Boolean).join(": ") };
  }
  return { what, step: "killed", errno: 0, text: complaint.trim() };
}
