import { createWriteStream, existsSync } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../../contract/error.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";

/** `caisson backup FILE` */
export async function backup(context: CliContext, given: ParsedArguments): Promise<number> {
  const file = resolve(context.cwd, given.positionals[0] ?? "");
  if (existsSync(file)) throw new CaissonError("exists", `${file} is there already`, { hint: "Choose another name, or remove it." });
  const part = `${file}.part-${process.pid}`;
  const archive = context.station.machine.backup({ compressed: /\.t?gz$/.test(file) });
  try {
    await pipeline(Readable.from(archive), createWriteStream(part, { mode: 0o600, flags: "wx", flush: true }));
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  const { size } = await stat(file);
  if (given.flag("json")) await context.stdout.printJson({ file, bytes: size });
  else await context.stderr.print(line`caisson: ${file} holds everything, in ${showBytes(size)}`);
  return 0;
}

/** `caisson restore FILE` */
export async function restore(context: CliContext, given: ParsedArguments): Promise<number> {
  const running = await context.server.reach();
  if (running !== null) {
    throw new CaissonError("conflict", `the station ${running.status.pid} uses this state folder`, { hint: "End it first: caisson down" });
  }
  const restored = await context.station.machine.restore(resolve(context.cwd, given.positionals[0] ?? ""));
  if (given.flag("json")) await context.stdout.printJson(restored);
  else if (!restored.isVerified)
    await context.stderr.print(line`caisson: the backup is of an older version and has no digests: its parts could not be checked`);
  if (!given.flag("json")) await context.stderr.print(line`caisson: everything is as it was at ${restored.createdAt}`);
  return 0;
}
