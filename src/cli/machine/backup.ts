import { createWriteStream, existsSync } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";

/** `caisson backup FILE` */
export async function backup(context: CliContext, args: ParsedArguments): Promise<number> {
  const file = resolve(context.cwd, args.positionals[0] ?? "");
  if (existsSync(file)) throw new CaissonError("exists", `${file} already exists`, { hint: "Choose another name, or remove it." });
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
  if (args.flag("json")) await context.stdout.printJson({ file, bytes: size });
  else await context.stderr.print(line`caisson: wrote a full backup to ${file} (${showBytes(size)})`);
  return 0;
}

/** `caisson restore FILE` */
export async function restore(context: CliContext, args: ParsedArguments): Promise<number> {
  const running = await context.server.reach();
  if (running !== null) {
    throw new CaissonError("conflict", `station ${running.status.pid} is using this state folder`, { hint: "Stop it first: caisson down" });
  }
  const restored = await context.station.machine.restore(resolve(context.cwd, args.positionals[0] ?? ""));
  if (args.flag("json")) await context.stdout.printJson(restored);
  else if (!restored.isVerified)
    await context.stderr.print(line`caisson: the backup is from an older version without digests, so its parts were not verified`);
  if (!args.flag("json")) await context.stderr.print(line`caisson: restored the state of ${restored.createdAt}`);
  return 0;
}
