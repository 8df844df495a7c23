import { checkListing, checkMode, checkWhole } from "./call-checks.ts";
import type { GuestFiles } from "./guest/files.ts";
import type { Sandbox } from "./sandbox.ts";

type FileCalls = Pick<Sandbox, "stat" | "list" | "mkdir" | "move" | "remove" | "readFile" | "writeFile" | "watch" | "tarIn" | "tarOut">;

interface FileCallsOptions {
  files: GuestFiles;
  /** The checks that all calls share. */
  check: (options: { user?: string }) => void;
  /** Converts a contract path to the guest's path. */
  inside: (path: string) => string;
  /** Converts a guest path back. Absent if the paths are the same. */
  fromGuest?: ((path: string) => string) | undefined;
}

/** A tool's file calls, which check their arguments before they ask the guest. */
export function fileCalls({ files, check, inside, fromGuest }: FileCallsOptions): FileCalls {
  return {
    async stat(path, options = {}) {
      check(options);
      const file = await files.stat(inside(path), { follow: options.follow ?? true, user: options.user, signal: options.signal });
      return { ...file, name: path };
    },
    async list(path, options = {}) {
      check(options);
      const { depth, entriesMax } = checkListing(options);
      return files.list(inside(path), { depth, entriesMax, user: options.user, signal: options.signal });
    },
    async mkdir(path, options = {}) {
      check(options);
      await files.mkdir(inside(path), {
        parents: options.parents ?? false,
        mode: checkMode(options.mode),
        user: options.user,
        signal: options.signal,
      });
    },
    async move(from, to, options = {}) {
      check(options);
      await files.move(inside(from), inside(to), { replace: options.replace ?? false, user: options.user, signal: options.signal });
    },
    async remove(path, options = {}) {
      check(options);
      await files.remove(inside(path), { recursive: options.recursive ?? false, user: options.user, signal: options.signal });
    },
    async readFile(path, options = {}) {
      check(options);
      const { offset, length, user, signal } = options;
      if (offset !== undefined) checkWhole("offset", offset);
      if (length !== undefined) checkWhole("length", length);
      return files.readFile(inside(path), { offset, length, user, signal });
    },
    async writeFile(path, data, options = {}) {
      check(options);
      const { how = "replace", parents = false, mode, user, signal } = options;
      return files.writeFile(inside(path), data, { how, parents, mode: checkMode(mode), user, signal });
    },
    async watch(path, options = {}) {
      check(options);
      const toPath = fromGuest;
      return files.watch(inside(path), {
        recursive: options.recursive ?? false,
        user: options.user,
        signal: options.signal,
        ...(toPath === undefined ? {} : { toPath }),
      });
    },
    async tarIn(folder, archive, options = {}) {
      check(options);
      const { bytesMax, entriesMax, stripComponents, keepOwner, user, signal } = options;
      for (const value of [bytesMax, entriesMax, stripComponents]) if (value !== undefined) checkWhole("a bound", value);
      return files.tarIn(inside(folder), archive, { bytesMax, entriesMax, stripComponents, keepOwner, user, signal });
    },
    async tarOut(path, options = {}) {
      check(options);
      const { exclude = [], bytesMax, user, signal } = options;
      if (bytesMax !== undefined) checkWhole("bytesMax", bytesMax);
      return files.tarOut(inside(path), { exclude, bytesMax, user, signal });
    },
  };
}
