import { CaissonError } from "../../contract/error/error.ts";
import type { NamedThing } from "../../contract/machine/machine-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { agreesToEnd } from "../sandboxes/changed-sandboxes.ts";
import { agreesToLose } from "../sessions/unapplied-work.ts";
import { line } from "../terminal/line.ts";

/** `caisson rm NAME…`: removes nothing unless every name exists and the user agrees. */
export async function runRm(context: CliContext, args: ParsedArguments): Promise<number> {
  const things: NamedThing[] = [];
  for (const word of args.positionals) things.push(await context.station.machine.find(word));
  const sessions = await sessionsThatGo(context, things);
  const sandboxes = things.filter(({ kind }) => kind === "sandbox").map(({ id }) => id);
  if (!(await agreesToLose(context, args, sessions)) || !(await agreesToEnd(context, args, sandboxes))) {
    await context.stdout.print(line`Nothing was removed.`);
    return 1;
  }
  for (const thing of things) await remove(context, thing, { withSession: sessions.includes(thing.id) });
  if (args.flag("json")) await context.stdout.printJson({ removed: things });
  else for (const { id } of things) await context.stdout.print(line`${id}`);
  return 0;
}

/** Returns the sessions to remove: those named, and each run's own. A session that runs share stays. */
async function sessionsThatGo({ station }: CliContext, things: readonly NamedThing[]): Promise<string[]> {
  const { sessions, damaged } = await station.sessions.list();
  const all = new Set([...sessions, ...damaged].map(({ id }) => id));
  return things.filter(({ kind, id }) => kind === "session" || (kind === "run" && all.has(id))).map(({ id }) => id);
}

async function remove({ station }: CliContext, { kind, id }: NamedThing, { withSession }: { withSession: boolean }): Promise<void> {
  if (kind === "sandbox") await station.sandboxes.remove(id);
  else if (kind === "snapshot") await station.sandboxes.removeSnapshot(id);
  else if (kind === "session") await station.sessions.discard(id, { why: "removed" });
  else {
    if ((await station.runs.get(id)).finish === null) {
      throw new CaissonError("conflict", `the run ${id} has not ended`, { hint: `Stop it first: caisson stop ${id}` });
    }
    if (withSession) await station.sessions.discard(id, { why: "removed" });
    await station.runs.remove(id);
  }
}
