import { checkListing, checkMode, checkWhole } from "./call-checks.ts";
import type { GuestFiles } from "./guest/files.ts";
import type { Sandbox } from "./sandbox.ts";

type FileCalls = Pick<Sandbox, "stat" | "list" | "mkdir" | "move" | "remove" | "readFile" | "writeFile" | "watch" | "tarIn" | "tarOut">;

interface FileCallsOptions {
  files: GuestFiles;
  /** Checks what all calls have in common. */
  check: (asked: { user?: string }) => void;
  /** Where a path of the contract lies for the guest. */
  inside: (path: string) => string;
  /** The other way; absent where it is the same. */
  fromGuest?: ((path: string) => string) | undefined;
}

/** What a tool may do with files, checked before the guest is asked. */
export function fileCalls({ files, check, inside, fromGuest }: FileCallsOptions): FileCalls {
  return {
    async stat(path, asked = {}) {
      check(asked);
      const file = await files.stat(inside(path), { follow: asked.follow ?? true, user: asked.user, signal: asked.signal });
      return { ...file, name: path };
    },
    async list(path, asked = {}) {
      check(asked);
      const { depth, entriesMax } = checkListing(asked);
      return files.list(inside(path), { depth, entriesMax, user: asked.user, signal: asked.signal });
    },
    async mkdir(path, asked = {}) {
      check(asked);
      await files.mkdir(inside(path), {
        parents: asked.parents ?? false,
        mode: checkMode(asked.mode),
        user: asked.user,
        signal: asked.signal,
      });
    },
    async move(from, to, asked = {}) {
      check(asked);
      await files.move(inside(from), inside(to), { replace: asked.replace ?? false, user: asked.user, signal: asked.signal });
    },
    async remove(path, asked = {}) {
      check(asked);
      await files.remove(inside(path), { recursive: asked.recursive ?? false, user: asked.user, signal: asked.signal });
    },
    async readFile(path, asked = {}) {
      check(asked);
      const { offset, length, user, signal } = asked;
      if (offset !== undefined) checkWhole("offset", offset);
      if (length !== undefined) checkWhole("length", length);
      return files.readFile(inside(path), { offset, length, user, signal });
    },
    async writeFile(path, data, asked = {}) {
      check(asked);
      const { how = "replace", parents = false, mode, user, signal } = asked;
      return files.writeFile(inside(path), data, { how, parents, mode: checkMode(mode), user, signal });
    },
    async watch(path, asked = {}) {
      check(asked);
      const toPath = fromGuest;
      return files.watch(inside(path), {
        recursive: asked.recursive ?? false,
        user: asked.user,
        signal: asked.signal,
        ...(toPath === undefined ? {} : { toPath }),
      });
    },
    async tarIn(folder, archive, asked = {}) {
      check(asked);
      const { bytesMax, entriesMax, stripComponents, user, signal } = asked;
      for (const value of [bytesMax, entriesMax, stripComponents]) if (value !== undefined) checkWhole("a bound", value);
      return files.tarIn(inside(folder), archive, { bytesMax, entriesMax, stripComponents, user, signal });
    },
    async tarOut(path, asked = {}) {
      check(asked);
      const { exclude = [], bytesMax, user, signal } = asked;
      if (bytesMax !== undefined) checkWhole("bytesMax", bytesMax);
      return files.tarOut(inside(path), { exclude, bytesMax, user, signal });
    },
  };
}
