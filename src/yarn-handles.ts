import { fdatasync, fsync, futimes } from "node:fs";
import { type FileHandle, open, opendir } from "node:fs/promises";
import { promisify } from "node:util";

type Handle = Pick<FileHandle, "fd" | "close">;

/** What Yarn's handles have no implementation of. */
const methods = {
  async sync(this: Handle) {
    await promisify(fsync)(this.fd);
  },
  async datasync(this: Handle) {
    await promisify(fdatasync)(this.fd);
  },
  async utimes(this: Handle, atime: number | Date, mtime: number | Date) {
    await promisify(futimes)(this.fd, atime, mtime);
  },
};

/**
 * Yarn's Plug'n'Play puts file handles of its own in place of Node's, which lack some methods and cannot be closed by
 * `await using`: they are completed. `prototypes` are those of its handles for files and folders.
 */
export function completeHandles(prototypes: { file: object; folder: object }): void {
  for (const [name, value] of Object.entries(methods)) Object.defineProperty(prototypes.file, name, { value, configurable: true });
  const dispose = async function (this: Handle) {
    await this.close();
  };
  for (const prototype of [prototypes.file, prototypes.folder])
    if (!(Symbol.asyncDispose in prototype)) Object.defineProperty(prototype, Symbol.asyncDispose, { value: dispose, configurable: true });
}

/** Looks for Yarn's handles where it has put them; to be called before any other file is opened. */
export async function completeYarnHandles(): Promise<void> {
  const file = await open("/dev/null");
  await file.close();
  const folder = await opendir("/");
  await folder.close();
  completeHandles({ file: Object.getPrototypeOf(file), folder: Object.getPrototypeOf(folder) });
}
