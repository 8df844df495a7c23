import { basename, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { type FolderMount, WorkspaceAccess } from "../../contract/sandbox.ts";
import type { ParsedArguments } from "../command.ts";

/** `--mount DIR[:PATH][:MODE]`, several times. Throws `invalid`. */
export function mountsFrom(given: ParsedArguments, { folder }: { folder: string }): FolderMount[] {
  return given.options("mount").map((text) => parseMount(text, folder));
}

function parseMount(text: string, cwd: string): FolderMount {
  const refuse = (why: string): never => {
    throw new CaissonError("invalid", `--mount ${JSON.stringify(text)}: ${why}`, {
      hint: "Write DIR[:PATH][:MODE], such as ../data, ../data:/data or ../data:/data:rw; MODE is ro (default), rw or overlay.",
    });
  };
  const last = text.slice(text.lastIndexOf(":") + 1);
  const mode = text.includes(":") ? WorkspaceAccess.safeParse(last).data : undefined;
  const place = mode === undefined ? text : text.slice(0, -last.length - 1);
  // The folder's own name may have colons; the path inside has none.
  const colon = place.lastIndexOf(":");
  const inside = colon < 0 ? undefined : place.slice(colon + 1);
  if (inside !== undefined && !inside.startsWith("/"))
    refuse(
      mode === undefined ? `${JSON.stringify(inside)} is not a mode, nor an absolute path inside` : `${inside} is not an absolute path`,
    );
  const dir = inside === undefined ? place : place.slice(0, colon);
  if (dir === "" || dir.includes("\0")) refuse("it names no folder");
  const path = resolve(cwd, dir);
  const name = basename(path);
  if (inside === undefined && name === "") refuse("it has no name to be called by inside");
  return { path, target: inside ?? `/mnt/${name}`, access: mode ?? "ro" };
}
