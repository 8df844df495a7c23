import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import type { CommandSpec, ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { agreesToEnd } from "./changed-sandboxes.ts";

type Loaded = Awaited<ReturnType<CommandSpec["load"]>>;

export const pause: Loaded = {
  async run({ station }, given) {
    for (const id of given.positionals) await station.sandboxes.pause(id);
    return 0;
  },
};

export const resume: Loaded = {
  async run({ station }, given) {
    for (const id of given.positionals) await station.sandboxes.resume(id);
    return 0;
  },
};

export const snapshot: Loaded = {
  async run({ station, stdout }, given) {
    const made = await station.sandboxes.snapshot(given.positionals[0] as string, defined({ name: given.option("name") }));
    await (given.flag("json") ? stdout.printJson({ id: made.id, sandbox: made.sandbox, name: made.name }) : stdout.print(line`${made.id}`));
    return 0;
  },
};

export const fork: Loaded = {
  async run({ station, stdout }, given) {
    const forked = await station.sandboxes.fork(given.positionals[0] as string);
    await (given.flag("json") ? stdout.printJson(forked) : stdout.print(line`${forked.id}`));
    return 0;
  },
};

export const remove: Loaded = {
  async run(context, given) {
    const ids = await idsToRemove(context, given);
    if (!(await agreesToEnd(context, given, ids))) {
      await context.stdout.print(line`Nothing was removed.`);
      return 1;
    }
    // One that cannot be removed does not keep the others.
    const outcomes = await Promise.allSettled(ids.map((id) => context.station.sandboxes.remove(id)));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return 0;
  },
};

async function idsToRemove({ station }: CliContext, given: ParsedArguments): Promise<readonly string[]> {
  if (given.flag("all")) {
    const { sandboxes, damaged } = await station.sandboxes.list();
    return [...sandboxes, ...damaged].map(({ id }) => id);
  }
  if (given.positionals.length > 0) return given.positionals;
  throw new CaissonError("invalid", "sandbox rm: ID is missing", { hint: "Name sandboxes, or say --all." });
}
