import { CaissonError } from "../../contract/error/error.ts";
import type { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import { ignore } from "../../lib/failures.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import type { parseSandboxOptions } from "../options/parse-sandbox-options.ts";
import { plainSandbox } from "../options/plain-sandbox.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";
import { line } from "../terminal/line.ts";
import { printSandboxWarnings, tellSnapshotWorkspace } from "./sandbox-warnings.ts";

/**
 * The sandbox of one command: an existing one, or a new one that is removed when the command ends unless it is kept.
 */
export interface CommandSandbox {
  sandbox: HeldSandbox;
  /** Whether the sandbox's files are removed with it after the command. */
  drops: boolean;
  /** Releases or removes the sandbox. Idempotent; resolves when nothing is left over. */
  end(): Promise<void>;
  /** Reverts the creation instead of `end`: removes a new sandbox, even a kept one. */
  undo(): Promise<void>;
}

/** Options that apply to a command even if its sandbox exists already. */
const commandOptions = new Set(["env", "output-max"]);
const creationOptions = ["runtime", "workspace", ...sandboxOptions.map(({ name }) => name).filter((name) => !commandOptions.has(name))];

/** Throws what `create` and `hold` throw, and `cancelled` on Ctrl-C, with nothing left behind. */
export async function sandboxForCommand(
  context: CliContext,
  args: ParsedArguments,
  options: { warns: boolean; timeoutMs: number | undefined; detached?: boolean },
): Promise<CommandSandbox> {
  const id = args.option("sandbox");
  if (id !== undefined) {
    const inVain = [...creationOptions, "no-workspace", "allow-root", "keep", "name"].find((name) => args.flag(name));
    if (inVain !== undefined) {
      throw new CaissonError("invalid", `--${inVain} cannot change the existing sandbox ${id}`, {
        hint: "Remove the option, or create a new sandbox with it.",
      });
    }
    const sandbox = await context.station.sandboxes.hold(id, context.interruption);
    return { sandbox, drops: false, end: () => sandbox.release(), undo: () => sandbox.release() };
  }
  const keep = args.flag("keep") || options.detached === true;
  const request = plainSandbox(context, args, { keep }) ?? (await requestedSandbox(context, args, { keep, timeoutMs: options.timeoutMs }));
  const sandbox = await context.station.sandboxes.create(request, context.interruption);
  let ended: Promise<void> | undefined;
  const end = async () => {
    if (!keep || context.interruption.received() !== null) return sandbox.destroy();
    await sandbox.release();
    if (args.flag("keep")) await context.stderr.print(line`caisson: kept ${sandbox.id}`);
  };
  if (options.warns) {
    await printSandboxWarnings(context, sandbox.info);
    await tellSnapshotWorkspace(context, args, sandbox.info);
  }
  return { sandbox, drops: !keep, end: () => (ended ??= end()), undo: () => (ended ??= sandbox.destroy()) };
}

async function requestedSandbox(...parameters: Parameters<typeof parseSandboxOptions>): Promise<CreateSandbox> {
  const { parseSandboxOptions } = await import("../options/parse-sandbox-options.ts");
  return parseSandboxOptions(...parameters);
}

/** Throws `cancelled` as soon as a signal arrives: the user must not wait for a guest that does not answer. */
export async function unlessInterrupted<T>(context: CliContext, work: Promise<T>): Promise<T> {
  void ignore(work, "awaited below, unless a signal ends us first");
  const interruption = context.interruption.first.then((signal) => {
    throw new CaissonError("cancelled", `interrupted by ${signal}`);
  });
  return Promise.race([work, interruption]);
}
