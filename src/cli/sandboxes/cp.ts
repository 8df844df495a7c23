import { stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import type { Copied } from "../../station/sandboxes/tools.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseBytes } from "../options/option-values.ts";
import { line, quotedName } from "../terminal/line.ts";

interface Inside {
  sandbox: HeldSandbox;
  path: string;
  as: { user?: string };
}

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const [source = "", target = ""] = given.positionals;
  const from = sandboxSide(source);
  const to = sandboxSide(target);
  if ((from === null) === (to === null)) {
    throw new CaissonError("invalid", "cp: exactly one of SOURCE and TARGET must be in a sandbox", {
      hint: "Write the one inside as SANDBOX:/path; a path outside that has a colon begins with ./ or /.",
    });
  }
  const user = given.option("user");
  const as = user === undefined ? {} : { user };
  const maxSize = given.option("max-size");
  if (from !== null) {
    await using sandbox = await context.station.sandboxes.hold(from.id, context.interruption);
    const inside = { sandbox, path: from.path, as };
    await bringOut(context, inside, { target, ...(maxSize === undefined ? {} : { bytesMax: parseBytes("max-size", maxSize) }) });
  } else if (to !== null) {
    await using sandbox = await context.station.sandboxes.hold(to.id, context.interruption);
    const inside = { sandbox, path: to.path, as };
    await bringIn(context, source, inside);
  }
  return 0;
}

/**
 * `SANDBOX:/path`; a relative path is taken from /workspace by the sandbox. A path outside that looks like one can be
 * written ./…
 */
function sandboxSide(word: string): { id: string; path: string } | null {
  const match = /^([a-z0-9][a-z0-9._-]*):(.*)$/s.exec(word);
  if (match === null) return null;
  return { id: match[1] as string, path: match[2] === "" ? "/workspace" : (match[2] as string) };
}

async function bringIn(context: CliContext, source: string, inside: Inside): Promise<void> {
  const { sandbox, as } = inside;
  if (source === "-") {
    await sandbox.tarIn(inside.path, context.stdin as AsyncIterable<Uint8Array>, as);
    context.stdin.destroy();
    return;
  }
  const outside = resolve(context.cwd, source);
  const isFolder = (await stat(outside).catch(() => null))?.isDirectory() === true;
  const target = isFolder ? await folderInside(inside, basename(outside)) : inside.path;
  await tell(context, await context.tools.copyIn(sandbox, outside, target, as));
}

/** Like cp(1): a folder goes into a folder that is there, else it gets the new name. */
async function folderInside(inside: Inside, name: string): Promise<string> {
  const { sandbox, path, as } = inside;
  const existing = await sandbox.stat(path, { ...as, follow: true }).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
  return existing?.kind === "directory" ? `${withoutTrailingSlashes(path)}/${name}` : path;
}

async function bringOut(context: CliContext, inside: Inside, { target, ...bounds }: { target: string; bytesMax?: number }): Promise<void> {
  const { sandbox, path, as } = inside;
  if (target === "-") {
    if (context.stdout.isTerminal) {
      throw new CaissonError("invalid", "cp: an archive is not written to a terminal", {
        hint: "Give it to a program: caisson cp ID:/path - | tar -t",
      });
    }
    for await (const chunk of await sandbox.tarOut(path, as)) await context.stdout.writeRaw(chunk);
    return;
  }
  const outside = resolve(context.cwd, target);
  const intoFolder = (await stat(outside).catch(() => null))?.isDirectory() === true;
  const isFolder = (await sandbox.stat(path, { ...as, follow: true })).kind === "directory";
  await tell(
    context,
    await context.tools.copyOut(sandbox, path, intoFolder && isFolder ? join(outside, basename(path) || "root") : outside, {
      ...as,
      ...bounds,
    }),
  );
}

async function tell(context: CliContext, copied: Copied): Promise<void> {
  for (const { name, reason } of copied.skipped) await context.stderr.print(line`caisson: left out ${quotedName(name)}: ${reason}`);
}
