import { z } from "zod";
import { SandboxPath } from "../sandbox.ts";
import { FileEntry, FileList, WatchedChange } from "./files.ts";
import { NameOrId } from "./name-or-id.ts";
import type { Route } from "./route.ts";

const params = { sandbox: NameOrId };
/** For whom a file is read or written. */
const user = z.string().min(1).max(32).optional();
const path = SandboxPath;
/** In decimal, such as 493 for rwxr-xr-x. */
const mode = z.int().min(0).max(0o7777).optional();
const parents = z.boolean().optional();

export const fileRoutes = {
  "files.list": {
    summary: "List a folder of a sandbox.",
    scope: "read",
    params,
    query: z.strictObject({ path, depth: z.int().min(1).max(100).optional(), limit: z.int().min(1).max(10_000).optional(), user }),
    answer: { json: FileList },
  },
  "files.remove": {
    summary: "Remove a file of a sandbox, or a folder with `recursive`.",
    scope: "run",
    params,
    query: z.strictObject({ path, recursive: z.boolean().optional(), user }),
    answer: {},
  },
  "files.read": {
    summary: "Read a file of a sandbox, or a part of it.",
    scope: "read",
    params,
    query: z.strictObject({ path, offset: z.int().min(0).optional(), length: z.int().min(0).optional(), user }),
    answer: { bytes: "application/octet-stream", parts: true },
  },
  "files.write": {
    summary: "Write a file of a sandbox, at once or not at all. `parents` makes the folders above it.",
    scope: "run",
    params,
    query: z.strictObject({
      path,
      parents,
      mode,
      how: z.enum(["replace", "append", "create"]).optional(),
      user,
    }),
    body: "bytes",
    answer: { json: z.object({ bytes: z.int().nonnegative() }) },
  },
  "files.info": {
    summary: "What a file of a sandbox is: its kind, size, mode and times. A link is shown as itself unless `follow`.",
    scope: "read",
    params,
    query: z.strictObject({ path, follow: z.boolean().optional(), user }),
    answer: { json: FileEntry },
  },
  "files.makeFolder": {
    summary: "Make a folder in a sandbox. `parents` makes those above it, and takes one that is there already.",
    scope: "run",
    params,
    body: z.strictObject({ path, parents, mode, user }),
    answer: {},
  },
  "files.move": {
    summary: "Move or rename a file or folder of a sandbox.",
    scope: "run",
    params,
    body: z.strictObject({ from: path, to: path, replace: z.boolean().optional(), user }),
    answer: {},
  },
  "files.watch": {
    summary: "What changes in a folder of a sandbox, from now on, as server-sent events.",
    scope: "read",
    params,
    query: z.strictObject({ path, recursive: z.boolean().optional(), user }),
    answer: { events: WatchedChange },
  },
  "files.pack": {
    summary: "A file or folder of a sandbox as a pax archive. One that breaks off is not whole.",
    scope: "read",
    params,
    query: z.strictObject({
      path,
      exclude: z.array(z.string().min(1).max(4096)).max(1000).optional(),
      bytesMax: z.int().min(1).optional(),
      user,
    }),
    answer: { bytes: "application/x-tar" },
  },
  "files.unpack": {
    summary: "Unpack a tar archive in a folder of a sandbox. What was unpacked before something went wrong stays.",
    scope: "run",
    params,
    query: z.strictObject({
      path,
      bytesMax: z.int().min(1).optional(),
      entriesMax: z.int().min(1).optional(),
      stripComponents: z.int().min(0).max(100).optional(),
      user,
    }),
    body: "bytes",
    answer: { json: z.object({ entries: z.int().nonnegative(), bytes: z.int().nonnegative() }) },
  },
} as const satisfies Record<string, Route>;
