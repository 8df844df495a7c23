import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ImageName, ImageView } from "../../../contract/image/image-verbs.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../../lib/failures.ts";

/** The names of images that were built here, each with a record of its template. */
export interface BuiltImages {
  /** Returns null if there is no such name, or its record is unreadable. */
  find(name: string): Promise<ImageView | null>;
  /** Sorted by name. */
  list(): Promise<ImageView[]>;
  save(image: ImageView): Promise<void>;
  remove(name: string): Promise<void>;
}

export function builtImages(stateDir: string): BuiltImages {
  const folder = join(stateDir, "images");
  const path = (name: string) => join(folder, `${name}.json`);
  const find = async (name: string) => {
    if (!ImageName.safeParse(name).success) return null;
    return ImageView.safeParse(jsonOrNull(await ifErrno(readFile(path(name), "utf8"), ABSENT, ""))).data ?? null;
  };
  return {
    find,
    async list() {
      const names = (await ifErrno(readdir(folder), ABSENT, [])).flatMap((file) => /^(.+)\.json$/.exec(file)?.[1] ?? []);
      const found = await Promise.all(names.sort().map(find));
      return found.filter((image) => image !== null);
    },
    async save(image) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const draft = join(folder, `.${image.name}.${process.pid}`);
      await writeFile(draft, JSON.stringify(image), { mode: 0o600, flush: true });
      await rename(draft, path(image.name));
    },
    remove: (name) => rm(path(name), { force: true }),
  };
}
