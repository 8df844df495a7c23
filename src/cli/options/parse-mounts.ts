import { basename, resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { type FolderMount, WorkspaceAccess } from "../../contract/sandbox/sandbox-fields.ts";
import type { ParsedArguments } from "../command.ts";

/** Parses `--mount DIR[:PATH][:MODE]`, which may be repeated. Throws `invalid`. */
export function mountsFrom(args: ParsedArguments, { folder }: { folder: string }): FolderMount[] {
  return args.options("mount").map((text) => parseMount(text, folder));
}

function parseMount(text: string, cwd: string): FolderMount {
  const refuse = (why: string): never => {
    throw new CaissonError("invalid", `--mount ${JSON.stringify(text)}: ${why}`, {
      hint: "Use DIR[:PATH][:MODE], such as ../data, ../data:/data or ../data:/data:rw; MODE is ro (default), rw or overlay.",
    });
  };
  const last = text.slice(text.lastIndexOf(":") + 1);
  const mode = text.includes(":") ? WorkspaceAccess.safeParse(last).data : undefined;
  const place = mode === undefined ? text : text.slice(0, -last.length - 1);
  // The folder's name may contain colons; the path inside may not.
  const colon = place.lastIndexOf(":");
  const inside = colon < 0 ? undefined : place.slice(colon + 1);
  if (inside !== undefined && !inside.startsWith("/"))
    refuse(mode === undefined ? `${JSON.stringify(inside)} is neither a mode nor an absolute path` : `${inside} is not an absolute path`);
  const dir = inside === undefined ? place : place.slice(0, colon);
  if (dir === "" || dir.includes("\0")) refuse("it names no folder");
  const path = resolve(cwd, dir);
  const name = basename(path);
  if (inside === undefined && name === "") refuse("the folder has no name to use inside");
  return { path, target: inside ?? `/mnt/${name}`, access: mode ?? "ro" };
}
