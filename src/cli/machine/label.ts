import { CaissonError } from "../../contract/error/error.ts";
import type { Labels } from "../../contract/ids.ts";
import type { ChangeLabels } from "../../contract/label/change-labels.ts";
import type { NamedThing } from "../../contract/machine/machine-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { visibleText } from "../terminal/plain-text.ts";

/** `caisson label NAME [KEY=VALUE…] [--remove KEY]…` */
export async function runLabel(context: CliContext, args: ParsedArguments): Promise<number> {
  const [word = "", ...texts] = args.positionals;
  const changes = changesFrom(texts, args.options("remove"));
  const thing = await context.station.machine.find(word);
  const labels = Object.keys(changes).length === 0 ? await labelsOf(context, thing) : await change(context, thing, changes);
  if (args.flag("json")) await context.stdout.printJson({ id: thing.id, labels });
  else for (const [key, value] of Object.entries(labels)) await context.stdout.print(line`${visibleText(`${key}=${value}`)}`);
  return 0;
}

function changesFrom(texts: readonly string[], removed: readonly string[]): ChangeLabels {
  const put = texts.map((text) => {
    const at = text.indexOf("=");
    if (at > 0) return [text.slice(0, at), text.slice(at + 1)] as const;
    throw new CaissonError("invalid", `${JSON.stringify(text)} is not a label`, { hint: "Use KEY=VALUE, or --remove KEY." });
  });
  const twice = removed.find((key) => put.some(([other]) => other === key));
  if (twice !== undefined) throw new CaissonError("invalid", `the label ${JSON.stringify(twice)} is both set and removed`);
  return Object.fromEntries([...put, ...removed.map((key) => [key, null] as const)]);
}

async function labelsOf({ station }: CliContext, thing: NamedThing): Promise<Labels> {
  if (thing.kind === "run") return (await station.runs.get(thing.id)).labels;
  if (thing.kind === "sandbox") return (await station.sandboxes.get(thing.id)).labels;
  throw noLabelsError(thing);
}

async function change(context: CliContext, thing: NamedThing, changes: ChangeLabels): Promise<Labels> {
  const { runs, sandboxes } = context.station;
  const by = context.variable("USER") ?? "user";
  if (thing.kind === "run") return (await runs.label(thing.id, changes, { by })).labels;
  if (thing.kind === "sandbox") return (await sandboxes.label(thing.id, changes)).labels;
  throw noLabelsError(thing);
}

function noLabelsError({ kind, id }: NamedThing): CaissonError {
  return new CaissonError("invalid", `a ${kind} cannot have labels: ${id}`, { hint: "Only runs and sandboxes can have labels." });
}
