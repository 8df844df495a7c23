import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../../contract/error.ts";
import { InsideControl } from "../../contract/inside-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson sandbox tell SANDBOX [TEXT]` */
export async function tell(context: CliContext, given: ParsedArguments): Promise<number> {
  const [sandbox = "", text] = given.positionals;
  const asked = given.option("control");
  const control = asked === undefined ? undefined : parseChoice(...InsideControl.options)("control", asked);
  await context.station.inside.tell(sandbox, defined({ text, control }), { by: "user" });
  return 0;
}

/** `caisson artifacts SANDBOX|RUN [NAME]` */
export async function artifacts(context: CliContext, given: ParsedArguments): Promise<number> {
  const [thing = "", name] = given.positionals;
  if (name !== undefined) return await read(context, { thing, name, file: given.option("output") });
  const found = await context.station.inside.artifacts(thing);
  if (given.flag("json")) await context.stdout.printJson(found);
  else if (found.length === 0) await context.stdout.print(line`No program in ${thing} left anything.`);
  else {
    const rows = found.map((artifact) => [artifact.name, showBytes(artifact.bytes), artifact.storedAt]);
    await context.stdout.print(table([["NAME", "SIZE", "STORED"], ...rows]));
  }
  return 0;
}

async function read(context: CliContext, asked: { thing: string; name: string; file: string | undefined }): Promise<number> {
  const data = await context.station.inside.readArtifact(asked.thing, asked.name);
  if (asked.file !== undefined) {
    await pipeline(data, createWriteStream(asked.file, { flags: "wx" }));
    return 0;
  }
  if (context.stdout.isTerminal) {
    throw new CaissonError("invalid", `${asked.name} may hold anything, also what a terminal obeys`, {
      hint: `Write it to a file: caisson artifacts ${asked.thing} ${asked.name} --output FILE`,
    });
  }
  for await (const chunk of data) await context.stdout.writeRaw(chunk);
  return 0;
}
