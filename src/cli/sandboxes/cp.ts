import { stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import { defined } from "../../lib/defined.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { Copied } from "../../verbs/sandbox-tools.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseBytes } from "../options/option-values.ts";
import { printResult } from "../print-result.ts";
import { line, quotedName } from "../terminal/line.ts";

interface Inside {
  sandbox: HeldSandbox;
  path: string;
  as: { user?: string };
}

export async function runCp(context: CliContext, args: ParsedArguments): Promise<number> {
  const [source = "", target = ""] = args.positionals;
  const from = sandboxSide(source);
  const to = sandboxSide(target);
  if ((from === null) === (to === null)) {
    throw new CaissonError("invalid", "cp: exactly one of SOURCE and TARGET must be in a sandbox", {
      hint: "Write the path inside as SANDBOX:/path. A path outside that contains a colon must begin with ./ or /.",
    });
  }
  if (target === "-" && args.flag("json"))
    throw new CaissonError("invalid", "cp: --json and - are mutually exclusive: the archive goes to standard output", {
      hint: "Remove one of them.",
    });
  const as = defined({ user: args.option("user") });
  const maxSize = args.option("max-size");
  const { id, path } = (from ?? to) as SandboxSide;
  await using sandbox = await context.station.sandboxes.hold(id, context.interruption);
  const inside = { sandbox, path, as };
  const bounds = maxSize === undefined ? {} : { bytesMax: parseBytes("max-size", maxSize) };
  const copied = from === null ? await bringIn(context, source, inside) : await bringOut(context, inside, { target, ...bounds });
  if (!args.flag("json"))
    for (const { name, reason } of copied?.skipped ?? [])
      await context.stderr.print(line`caisson: left out ${quotedName(name)}: ${reason}`);
  return await printResult(context, args, { json: { source, target, sandbox: sandbox.id, ...copied } });
}

interface SandboxSide {
  id: string;
  path: string;
}

/**
 * Parses `SANDBOX:/path`; the sandbox resolves a relative path in /workspace. Write ./… for a path outside that looks
 * like one inside.
 */
function sandboxSide(word: string): SandboxSide | null {
  const match = /^([a-z0-9][a-z0-9._-]*):(.*)$/s.exec(word);
  if (match === null) return null;
  return { id: match[1] as string, path: match[2] === "" ? "/workspace" : (match[2] as string) };
}

/** Resolves with null for an archive, whose files are not counted. */
async function bringIn(context: CliContext, source: string, inside: Inside): Promise<Copied | null> {
  const { sandbox, as } = inside;
  if (source === "-") {
    await sandbox.tarIn(inside.path, context.stdin as AsyncIterable<Uint8Array>, as);
    context.stdin.destroy();
    return null;
  }
  const outside = resolve(context.cwd, source);
  const isFolder = (await ifErrno(stat(outside), ABSENT, null))?.isDirectory() === true;
  const target = isFolder ? await folderInside(inside, basename(outside)) : inside.path;
  return await context.tools.copyIn(sandbox, outside, target, as);
}

/** Like cp(1): a folder goes into an existing folder, or else gets the new name. */
async function folderInside(inside: Inside, name: string): Promise<string> {
  const { sandbox, path, as } = inside;
  const existing = await foundOrNull(sandbox.stat(path, { ...as, follow: true }));
  return existing?.kind === "directory" ? `${withoutTrailingSlashes(path)}/${name}` : path;
}

async function bringOut(
  context: CliContext,
  inside: Inside,
  { target, ...bounds }: { target: string; bytesMax?: number },
): Promise<Copied | null> {
  const { sandbox, path, as } = inside;
  if (target === "-") {
    if (context.stdout.isTerminal) {
      throw new CaissonError("invalid", "cp: refusing to write an archive to a terminal", {
        hint: "Pipe it to a program: caisson cp ID:/path - | tar -t",
      });
    }
    for await (const chunk of await sandbox.tarOut(path, as)) await context.stdout.writeRaw(chunk);
    return null;
  }
  const outside = resolve(context.cwd, target);
  const intoFolder = (await ifErrno(stat(outside), ABSENT, null))?.isDirectory() === true;
  const isFolder = (await sandbox.stat(path, { ...as, follow: true })).kind === "directory";
  const place = intoFolder && isFolder ? join(outside, basename(path) || "root") : outside;
  return await context.tools.copyOut(sandbox, path, place, { ...as, ...bounds });
}
