import { CaissonError } from "../../contract/error.ts";
import type { NamedThing } from "../../contract/machine-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { agreesToLose } from "../sessions/unapplied-work.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { type Line, line } from "../terminal/line.ts";

/** `caisson rm NAME…`: nothing is removed unless all of them are there, and somebody agreed. */
export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const things: NamedThing[] = [];
  for (const word of given.positionals) things.push(await context.station.machine.find(word));
  const sessions = await sessionsThatGo(context, things);
  if (!(await agreesToLose(context, given, sessions)) || !(await agreesToEnd(context, given, things))) {
    await context.stdout.print(line`Nothing was removed.`);
    return 1;
  }
  for (const thing of things) await remove(context, thing, { withSession: sessions.includes(thing.id) });
  if (given.flag("json")) await context.stdout.printJson({ removed: things });
  else for (const { id } of things) await context.stdout.print(line`${id}`);
  return 0;
}

/** A run's own session goes with it; one that it shares with others stays. */
async function sessionsThatGo({ station }: CliContext, things: readonly NamedThing[]): Promise<string[]> {
  const all = new Set((await station.sessions.list()).map(({ id }) => id));
  return things.filter(({ kind, id }) => kind === "session" || (kind === "run" && all.has(id))).map(({ id }) => id);
}

/** Of sandboxes: what changed in their copies of folders goes with them. */
async function agreesToEnd(context: CliContext, given: ParsedArguments, things: readonly NamedThing[]): Promise<boolean> {
  if (given.flag("yes")) return true;
  const losses: Line[] = [];
  for (const { kind, id } of things) {
    if (kind !== "sandbox") continue;
    const changed = await context.station.sandboxes.changedFiles(id).catch(() => null);
    if (changed === null || changed.files === 0) continue;
    losses.push(line`${changed.files}${changed.isMinimum ? " or more" : ""} ${changed.files === 1 ? "file" : "files"} changed in ${id}`);
  }
  if (losses.length === 0) return true;
  if (!canAsk(context) || given.flag("json")) {
    throw new CaissonError("conflict", losses.map(({ text }) => text).join("; "), {
      hint: "`caisson diff SANDBOX` shows it, `caisson apply SANDBOX` takes it; --yes removes it all the same.",
    });
  }
  await context.stdout.print(losses);
  return await askYes(context, line`Remove ${losses.length === 1 ? "it" : "them"} all the same?`);
}

async function remove({ station }: CliContext, { kind, id }: NamedThing, { withSession }: { withSession: boolean }): Promise<void> {
  if (kind === "sandbox") await station.sandboxes.remove(id);
  else if (kind === "snapshot") await station.sandboxes.removeSnapshot(id);
  else if (kind === "session") await station.sessions.discard(id, { why: "removed" });
  else {
    if ((await station.runs.get(id)).finish === null) {
      throw new CaissonError("conflict", `the run ${id} is not over`, { hint: `Stop it first: caisson stop ${id}` });
    }
    if (withSession) await station.sessions.discard(id, { why: "removed" });
    await station.runs.remove(id);
  }
}
