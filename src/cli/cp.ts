import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { chmod, lstat, mkdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../contract/error.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import type { Given } from "./command.ts";
import type { CliContext } from "./context.ts";
import { openSandbox } from "./sandbox-session.ts";
import { packFolder } from "./tar-pack.ts";
import { unpackInto } from "./tar-unpack.ts";

interface Inside {
  sandbox: OwnedSandbox;
  path: string;
  as: { user?: string };
}

export async function run(context: CliContext, given: Given): Promise<number> {
  const [source = "", target = ""] = given.words;
  const from = sandboxSide(source);
  const to = sandboxSide(target);
  if ((from === null) === (to === null)) {
    throw new CaissonError("invalid", "cp: exactly one of SOURCE and TARGET must be in a sandbox", {
      hint: "Write the one inside as ID:/path.",
    });
  }
  const user = given.text("user");
  const as = user === undefined ? {} : { user };
  if (from !== null) {
    const inside = { sandbox: await openSandbox(context, from.id), path: from.path, as };
    await copyOut(context, inside, target);
  } else if (to !== null) {
    const inside = { sandbox: await openSandbox(context, to.id), path: to.path, as };
    await copyIn(context, source, inside);
  }
  return 0;
}

/** `ID:/path`; a relative path is taken from /workspace by the sandbox. A path outside that looks like one can be written ./… */
function sandboxSide(word: string): { id: string; path: string } | null {
  const match = /^(sb_[a-z2-7]+):(.*)$/s.exec(word);
  if (match === null) return null;
  return { id: match[1] as string, path: match[2] === "" ? "/workspace" : (match[2] as string) };
}

async function copyIn(context: CliContext, source: string, inside: Inside): Promise<void> {
  const { sandbox, as } = inside;
  if (source === "-") {
    await sandbox.tarIn(inside.path, context.stdin as AsyncIterable<Uint8Array>, as);
    context.stdin.destroy();
    return;
  }
  const outside = resolve(context.cwd, source);
  const found = await stat(outside).catch(() => null);
  if (found === null) throw new CaissonError("not_found", `cp: ${source} does not exist`);
  const target = await targetInside(inside, basename(outside));
  if (found.isDirectory()) await sandbox.tarIn(target, packFolder(outside), as);
  else if (found.isFile()) await sandbox.writeFile(target, createReadStream(outside), { ...as, mode: found.mode & 0o777 });
  else throw new CaissonError("unsupported", `cp: ${source} is neither a file nor a folder`);
}

/** Like cp(1): into a folder that is there, else under the new name. */
async function targetInside(inside: Inside, name: string): Promise<string> {
  const { sandbox, path, as } = inside;
  const existing = await sandbox.stat(path, { ...as, follow: true }).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
  if (existing?.kind === "directory") return `${path.replace(/\/+$/, "")}/${name}`;
  if (path.endsWith("/")) throw new CaissonError("not_found", `cp: the folder ${path} does not exist in ${sandbox.id}`);
  return path;
}

async function copyOut(context: CliContext, inside: Inside, target: string): Promise<void> {
  const { sandbox, path, as } = inside;
  if (target === "-") {
    for await (const chunk of await sandbox.tarOut(path, as)) await context.stdout.write(chunk);
    return;
  }
  const info = await sandbox.stat(path, { ...as, follow: true });
  const outside = await targetOutside(resolve(context.cwd, target), basename(path) || "root");
  const temporary = join(dirname(outside), `.caisson-${randomBytes(6).toString("hex")}`);
  try {
    if (info.kind === "directory") {
      if (await exists(outside))
        throw new CaissonError("exists", `cp: ${outside} exists already`, { hint: "Name a folder that does not, or remove it first." });
      await mkdir(temporary, { mode: 0o700 });
      const { leftOut } = await unpackInto(temporary, await sandbox.tarOut(path, as));
      await chmod(temporary, (info.mode & 0o777) | 0o700);
      for (const name of leftOut) await context.stderr.write(`caisson: left out ${name}: a link that leads out of the folder\n`);
    } else {
      await pipeline(await sandbox.readFile(path, as), createWriteStream(temporary, { flags: "wx", mode: info.mode & 0o777 }));
    }
    await rename(temporary, outside);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

async function targetOutside(outside: string, name: string): Promise<string> {
  const existing = await stat(outside).catch(() => null);
  if (existing?.isDirectory() === true) return join(outside, name);
  if (!(await exists(dirname(outside)))) throw new CaissonError("not_found", `cp: the folder ${dirname(outside)} does not exist`);
  return outside;
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null;
}
