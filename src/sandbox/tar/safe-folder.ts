import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { isErrno } from "../../lib/failures.ts";

const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Opens a folder below an open one, component by component, never through a link. Names are looked up in open folders,
 * so none can be swapped for a link in between. Throws `unsafe` for a link on the way, and the system's error
 * otherwise. The caller closes the result, unless it is `root` itself.
 */
export async function openFolderBelow(root: FileHandle, components: readonly string[], options: { make: boolean }): Promise<FileHandle> {
  let folder = root;
  for (const component of components) {
    const path = childPath(folder, component);
    try {
      if (options.make) await mkdir(path).catch(ignoring("EEXIST"));
      const next = await open(path, FOLDER_FLAGS);
      if (folder !== root) await folder.close();
      folder = next;
    } catch (error) {
      if (folder !== root) await folder.close();
      throw isErrno(error, "ELOOP", "ENOTDIR")
        ? new CaissonError("unsafe", `${JSON.stringify(component)} is on the path and is not a folder`, { cause: error })
        : error;
    }
  }
  return folder;
}

export function openFolder(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY);
}

/** Returns the path of a name in an open folder, which stays valid if the folder is moved. */
export function childPath(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}

/** Splits an entry's name into components. Throws `unsafe` for absolute names, `..` and NUL. */
export function safeComponents(name: string): string[] {
  if (name.startsWith("/") || name.includes("\0"))
    throw new CaissonError("unsafe", `the archive contains the unsafe name ${JSON.stringify(name.slice(0, 200))}`);
  const components = name.split("/").filter((part) => part !== "" && part !== ".");
  if (components.includes(".."))
    throw new CaissonError("unsafe", `the archive contains the unsafe name ${JSON.stringify(name.slice(0, 200))}`);
  return components;
}

export function ignoring(code: string): (error: unknown) => void {
  return (error) => {
    if (!isErrno(error, code)) throw error;
  };
}
