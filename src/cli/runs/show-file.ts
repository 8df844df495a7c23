import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { atStep } from "../sessions/step-of-run.ts";
import { line } from "../terminal/line.ts";

/** `caisson show RUN[@STEP] PATH` */
export async function showFile(context: CliContext, args: ParsedArguments): Promise<number> {
  const [word = "", path = ""] = args.positionals;
  const { name, at } = atStep(word);
  const pieces: Uint8Array[] = [];
  for await (const piece of context.station.sessions.readFile(name, { path, ...defined({ at }) })) pieces.push(piece);
  const content = Buffer.concat(pieces);
  if (args.flag("json")) {
    await context.stdout.printJson({ name, step: at ?? null, path, bytes: content.length, base64: content.toString("base64") });
    return 0;
  }
  // An agent wrote the file, so a terminal gets it without control sequences.
  if (context.stdout.isTerminal)
    await context.stdout.print(
      content
        .toString("utf8")
        .replace(/\n$/, "")
        .split("\n")
        .map((text) => line`${text}`),
    );
  else await context.stdout.writeRaw(content);
  return 0;
}
