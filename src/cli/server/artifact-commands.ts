import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { InsideControl } from "../../contract/inside/inside-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice } from "../options/option-values.ts";
import { printResult } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson sandbox tell SANDBOX [TEXT]` */
export async function tellSandbox(context: CliContext, args: ParsedArguments): Promise<number> {
  const [sandbox = "", text] = args.positionals;
  const word = args.option("control");
  const control = word === undefined ? undefined : parseChoice(...InsideControl.options)("control", word);
  await context.station.inside.tell(sandbox, defined({ text, control }), { by: "user" });
  return await printResult(context, args, { json: { sandbox, ...defined({ text, control }) } });
}

/** `caisson artifacts SANDBOX|RUN [NAME]` */
export async function listArtifacts(context: CliContext, args: ParsedArguments): Promise<number> {
  const [thing = "", name] = args.positionals;
  if (name !== undefined) return await readArtifact(context, { thing, name, file: args.option("output") });
  const artifacts = await context.station.inside.artifacts(thing);
  const rows = artifacts.map((artifact) => [artifact.name, showBytes(artifact.bytes), artifact.storedAt]);
  const text = rows.length === 0 ? line`${thing} has no artifacts.` : table([["NAME", "SIZE", "STORED"], ...rows]);
  return await printResult(context, args, { json: artifacts, text });
}

async function readArtifact(context: CliContext, artifact: { thing: string; name: string; file: string | undefined }): Promise<number> {
  const data = await context.station.inside.readArtifact(artifact.thing, artifact.name);
  if (artifact.file !== undefined) {
    await pipeline(data, createWriteStream(artifact.file, { flags: "wx" }));
    return 0;
  }
  if (context.stdout.isTerminal) {
    throw new CaissonError("invalid", `${artifact.name} may contain terminal control sequences`, {
      hint: `Write it to a file: caisson artifacts ${artifact.thing} ${artifact.name} --output FILE`,
    });
  }
  for await (const chunk of data) await context.stdout.writeRaw(chunk);
  return 0;
}
