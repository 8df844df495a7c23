import { CaissonError } from "../../contract/error.ts";
import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { plainSandbox } from "../options/plain-sandbox.ts";
import type { sandboxFrom } from "../options/spec-options.ts";
import { line } from "../terminal/line.ts";
import { printSandboxWarnings, tellSnapshotWorkspace } from "./sandbox-warnings.ts";

/**
 * A sandbox for one command: the one that was named, or a fresh one that goes when the command ends unless it is kept.
 */
export interface CommandSandbox {
  sandbox: HeldSandbox;
  /** Whether its files go with the command. */
  drops: boolean;
  /** Ends what the session began. Idempotent; resolves when nothing is left that should not be. */
  end(): Promise<void>;
  /** As if it had not been asked for: a fresh one is removed, kept or not. In place of `end`. */
  undo(): Promise<void>;
}

const creationOptions = [
  "runtime",
  "oci-runtime",
  "image",
  "snapshot",
  "workspace",
  "mount",
  "hide",
  "show",
  "allow-hooks",
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
  options: { warns: boolean; timeoutMs: number | undefined; detached?: boolean },
): Promise<CommandSandbox> {
  const id = given.option("sandbox");
  if (id !== undefined) {
    const inVain = [...creationOptions, "no-workspace", "allow-root", "keep", "name"].find((name) => given.flag(name));
    if (inVain !== undefined) {
      throw new CaissonError("invalid", `--${inVain} cannot change the existing sandbox ${id}`, {
        hint: "Leave it out, or make a new sandbox with it.",
      });
    }
    const sandbox = await context.station.sandboxes.hold(id, context.interruption);
    return { sandbox, drops: false, end: () => sandbox.release(), undo: () => sandbox.release() };
  }
  const keep = given.flag("keep") || options.detached === true;
  const request = plainSandbox(context, given, { keep }) ?? (await sandboxAsked(context, given, { keep, timeoutMs: options.timeoutMs }));
  const sandbox = await context.station.sandboxes.create(request, context.interruption);
  let ended: Promise<void> | undefined;
  const end = async () => {
    if (!keep || context.interruption.received() !== null) return sandbox.destroy();
    await sandbox.release();
    if (given.flag("keep")) await context.stderr.print(line`caisson: kept ${sandbox.id}`);
  };
  if (options.warns) {
    await printSandboxWarnings(context, sandbox.info);
    await tellSnapshotWorkspace(context, given, sandbox.info);
  }
  return { sandbox, drops: !keep, end: () => (ended ??= end()), undo: () => (ended ??= sandbox.destroy()) };
}

async function sandboxAsked(...asked: Parameters<typeof sandboxFrom>): Promise<CreateSandbox> {
  const { sandboxFrom } = await import("../options/spec-options.ts");
  return sandboxFrom(...asked);
}

/** Throws `cancelled` as soon as we are told to end: a guest that does not answer keeps nobody who wants to leave. */
export async function unlessInterrupted<T>(context: CliContext, work: Promise<T>): Promise<T> {
  work.catch(() => {});
  const told = context.interruption.first.then((signal) => {
    throw new CaissonError("cancelled", `interrupted by ${signal}`);
  });
  return Promise.race([work, told]);
}
