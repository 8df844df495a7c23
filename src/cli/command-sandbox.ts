import { CaissonError } from "../contract/error.ts";
import type { SandboxId } from "../contract/ids.ts";
import { SandboxId as SandboxIdSchema } from "../contract/ids.ts";
import type { SandboxSpec } from "../contract/sandbox.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import { createStore } from "../sandbox/store.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";
import { specFrom } from "./spec-options.ts";

/** A sandbox for one command: the one that was named, or a fresh one that goes when the command ends unless it is kept. */
export interface CommandSandbox {
  sandbox: OwnedSandbox;
  /** True for a sandbox that others may be using too: it is left as it was found. */
  shared: boolean;
  /** Ends what the session began. Idempotent; resolves when nothing is left that should not be. */
  end(): Promise<void>;
}

const creationOptions = [
  "runtime",
  "oci-runtime",
  "image",
  "snapshot",
  "workspace",
  "memory",
  "cpus",
  "pids",
  "disk",
  "network",
  "secret",
  "gateway",
];

/** Throws what `create` and `open` throw; on Ctrl-C `cancelled`, with nothing left behind. */
export async function sandboxForCommand(
  context: CliContext,
  given: ParsedArguments,
  options: { warnings: "print" | "inEvents"; timeoutMs: number | undefined },
): Promise<CommandSandbox> {
  const id = given.option("sandbox");
  if (id !== undefined) {
    const inVain = [...creationOptions, "no-workspace", "allow-root", "keep"].find((name) => given.flag(name));
    if (inVain !== undefined) {
      throw new CaissonError("invalid", `--${inVain} cannot change the existing sandbox ${id}`, {
        hint: "Leave it out, or make a new sandbox with it.",
      });
    }
    const sandbox = await unlessInterrupted(context, openSandbox(context, id));
    return { sandbox, shared: true, end: async () => {} };
  }
  const keep = given.flag("keep");
  const spec = specFrom(context, given, { keep, timeoutMs: options.timeoutMs });
  const sandbox = await createSandbox(context, { runtime: given.option("runtime") ?? context.config.runtime, spec });
  let ended: Promise<void> | undefined;
  const end = async () => {
    if (!keep || context.interruption.received() !== null) return sandbox.destroy();
    await keepSandbox(sandbox);
    await context.stderr.print(line`caisson: kept ${sandbox.id}`);
  };
  for (const warning of options.warnings === "print" ? sandbox.info.warnings : []) await context.stderr.print(line`caisson: ${warning}`);
  return { sandbox, shared: false, end: () => (ended ??= end()) };
}

/** Throws `cancelled` as soon as we are told to end: a guest that does not answer keeps nobody who wants to leave. */
export async function unlessInterrupted<T>(context: CliContext, work: Promise<T>): Promise<T> {
  work.catch(() => {});
  const told = context.interruption.first.then((signal) => {
    throw new CaissonError("cancelled", `interrupted by ${signal}`);
  });
  return Promise.race([work, told]);
}

/** A probe that was remembered may be wrong by now; then `auto` looks again, once. */
export async function createSandbox(context: CliContext, options: { runtime: string; spec: SandboxSpec }): Promise<OwnedSandbox> {
  const create = async () => {
    const runtime = await context.resolver.resolve(options.runtime);
    if (context.interruption.signal.aborted) throw new CaissonError("cancelled", "interrupted before the sandbox was made");
    return runtime.create(options.spec, { signal: context.interruption.signal });
  };
  try {
    return await create();
  } catch (error) {
    if (options.runtime !== "auto" || !(error instanceof CaissonError) || error.code !== "unavailable") throw error;
    await context.resolver.forget();
    return create();
  }
}

/** Lets go of a sandbox that is to stay. One that cannot stay (nothing would serve its network) is removed: nobody was told its id. */
export async function keepSandbox(sandbox: OwnedSandbox): Promise<void> {
  try {
    await sandbox.release();
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

export function checkSandboxId(text: string): SandboxId {
  const parsed = SandboxIdSchema.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${JSON.stringify(text)} is not a sandbox's id`, {
    hint: "An id looks like sb_k3v7q2m5x4ab; `caisson sandbox ls` lists them.",
  });
}

/** Throws `invalid`, `not_found`, `lost`. */
export async function openSandbox(context: CliContext, id: string): Promise<OwnedSandbox> {
  return (await runtimeOf(context, id)).open(checkSandboxId(id));
}

/** The runtime that a sandbox was made by, from its record. */
export async function runtimeOf(context: CliContext, id: string): Promise<Runtime> {
  const record = await createStore({ stateDir: context.stateDir }).read(checkSandboxId(id));
  return context.runtimes.get(record.runtime);
}
