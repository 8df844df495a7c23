import { createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { lstatOrNull } from "../../lib/paths.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { printResult } from "../print-result.ts";
import { line } from "../terminal/line.ts";

/** `caisson template export TEMPLATE FILE` */
export async function exportTemplate(context: CliContext, args: ParsedArguments): Promise<number> {
  const [word = "", target = ""] = args.positionals;
  const archive = context.station.templates.export(word);
  if (target === "-") {
    if (context.stdout.isTerminal)
      throw new CaissonError("invalid", "refusing to write an archive to a terminal", {
        hint: "Pipe it to a program: caisson template export NAME - | tar -t",
      });
    for await (const piece of archive) await context.stdout.writeRaw(piece);
    return 0;
  }
  const path = resolve(context.cwd, target);
  if (lstatOrNull(path) !== null)
    throw new CaissonError("exists", `${path} already exists`, { hint: "Choose another name, or remove it." });
  const part = `${path}.part-${process.pid}`;
  try {
    if (path.endsWith(".tar")) await pipeline(Readable.from(archive), createWriteStream(part, { mode: 0o600, flags: "wx", flush: true }));
    else await context.tools.unpackLayout(part, archive);
    await rename(part, path);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  }
  const bytes = path.endsWith(".tar") ? (await stat(path)).size : null;
  const size = bytes === null ? "" : ` (${showBytes(bytes)})`;
  return await printResult(context, args, { json: { file: path, bytes }, note: line`wrote ${path}${size}` });
}
