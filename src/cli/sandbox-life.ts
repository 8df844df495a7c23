import { CaissonError } from "../contract/error.ts";
import { removeDamaged, removeRemains } from "../sandbox/remove-remains.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import { createStore } from "../sandbox/store.ts";
import type { CommandSpec, ParsedArguments } from "./command.ts";
import { checkSandboxId, keepSandbox, openSandbox, runtimeOf } from "./command-sandbox.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";

type Loaded = Awaited<ReturnType<CommandSpec["load"]>>;

function forEachSandbox(act: (sandbox: OwnedSandbox) => Promise<void>): Loaded {
  return {
    async run(context, given) {
      for (const id of given.positionals) await act(await openSandbox(context, id));
      return 0;
    },
  };
}

export const pause: Loaded = forEachSandbox((sandbox) => sandbox.pause());
export const resume: Loaded = forEachSandbox((sandbox) => sandbox.resume());

export const snapshot: Loaded = {
  async run(context, given) {
    const sandbox = await openSandbox(context, given.positionals[0] as string);
    const name = given.option("name");
    const id = await sandbox.snapshot(name === undefined ? {} : { name });
    await (given.flag("json")
      ? context.stdout.printJson({ id, sandbox: sandbox.id, name: name ?? null })
      : context.stdout.print(line`${id}`));
    return 0;
  },
};

export const fork: Loaded = {
  async run(context, given) {
    const sandbox = await openSandbox(context, given.positionals[0] as string);
    const forked = await sandbox.fork();
    await keepSandbox(forked);
    await (given.flag("json") ? context.stdout.printJson(forked.info) : context.stdout.print(line`${forked.id}`));
    return 0;
  },
};

export const remove: Loaded = {
  async run(context, given) {
    const ids = await idsToRemove(context, given);
    // One that cannot be removed does not keep the others.
    const outcomes = await Promise.allSettled(ids.map((id) => removeSandbox(context, id)));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return 0;
  },
};

async function idsToRemove(context: CliContext, given: ParsedArguments): Promise<readonly string[]> {
  if (given.flag("all")) {
    const { records, damaged } = await createStore({ stateDir: context.stateDir }).list();
    return [...records, ...damaged].map((record) => record.id);
  }
  if (given.positionals.length === 0)
    throw new CaissonError("invalid", "sandbox rm: ID is missing", { hint: "Name sandboxes, or say --all." });
  return given.positionals;
}

/** By asking it, or by the host's own means. */
export async function removeSandbox(context: CliContext, id: string): Promise<void> {
  const store = createStore({ stateDir: context.stateDir });
  const runtime = await runtimeOf(context, id).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "internal") return null;
    throw error;
  });
  if (runtime === null) {
    const runtimes = await Promise.all(context.runtimes.names.map((name) => context.runtimes.get(name)));
    return await removeDamaged(store, runtimes, checkSandboxId(id));
  }
  try {
    await (await runtime.open(checkSandboxId(id))).destroy();
  } catch (error) {
    if (!(error instanceof CaissonError) || !["lost", "internal", "protocol", "timeout", "unavailable"].includes(error.code)) throw error;
    await removeRemains(store, runtime, id);
  }
  // A sandbox that went away in the meantime is what was asked for.
  await store.remove(checkSandboxId(id));
}
