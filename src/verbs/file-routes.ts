import { z } from "zod";
import { FileEntry, FileList, WatchedChange } from "../contract/api/files.ts";
import { NameOrId } from "../contract/api/name-or-id.ts";
import { SandboxPath } from "../contract/sandbox/sandbox-fields.ts";
import type { Route } from "./route.ts";
import type { Path } from "./verb.ts";

const params = { sandbox: NameOrId };
/** The user inside the sandbox to act as. */
const user = z.string().min(1).max(32).optional();
const path = SandboxPath;
/** In decimal, such as 493 for rwxr-xr-x. */
const mode = z.int().min(0).max(0o7777).optional();
const parents = z.boolean().optional();

export const fileRoutes = {
  "files.list": {
    path: "GET /v1/sandboxes/{sandbox}/files",
    summary: "List a folder of a sandbox.",
    scope: "read",
    params,
    query: z.strictObject({ path, depth: z.int().min(1).max(100).optional(), limit: z.int().min(1).max(10_000).optional(), user }),
    answer: { json: FileList },
  },
  "files.remove": {
    path: "DELETE /v1/sandboxes/{sandbox}/files",
    summary: "Remove a file of a sandbox, or a folder with `recursive`.",
    scope: "run",
    params,
    query: z.strictObject({ path, recursive: z.boolean().optional(), user }),
    answer: {},
  },
  "files.read": {
    path: "GET /v1/sandboxes/{sandbox}/files/content",
    summary: "Read a file of a sandbox, or a part of it.",
    scope: "read",
    params,
    query: z.strictObject({ path, offset: z.int().min(0).optional(), length: z.int().min(0).optional(), user }),
    answer: { bytes: "application/octet-stream", parts: true },
  },
  "files.write": {
    path: "PUT /v1/sandboxes/{sandbox}/files/content",
    summary: "Write a file of a sandbox atomically. `parents` creates missing parent folders.",
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
    path: "GET /v1/sandboxes/{sandbox}/files/info",
    summary: "Get the kind, size, mode and times of a file of a sandbox. Links are not followed unless `follow` is set.",
    scope: "read",
    params,
    query: z.strictObject({ path, follow: z.boolean().optional(), user }),
    answer: { json: FileEntry },
  },
  "files.makeFolder": {
    path: "POST /v1/sandboxes/{sandbox}/files/folders",
    summary: "Create a folder in a sandbox. `parents` creates missing parent folders and accepts an existing folder.",
    scope: "run",
    params,
    body: z.strictObject({ path, parents, mode, user }),
    answer: {},
  },
  "files.move": {
    path: "POST /v1/sandboxes/{sandbox}/files/move",
    summary: "Move or rename a file or folder of a sandbox.",
    scope: "run",
    params,
    body: z.strictObject({ from: path, to: path, replace: z.boolean().optional(), user }),
    answer: {},
  },
  "files.watch": {
    path: "GET /v1/sandboxes/{sandbox}/files/watch",
    summary: "Watch a folder of a sandbox: its changes from now on, as server-sent events.",
    scope: "read",
    params,
    query: z.strictObject({ path, recursive: z.boolean().optional(), user }),
    answer: { events: WatchedChange },
  },
  "files.pack": {
    path: "GET /v1/sandboxes/{sandbox}/files/archive",
    summary: "Download a file or folder of a sandbox as a pax archive. An archive that breaks off is incomplete.",
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
    path: "PUT /v1/sandboxes/{sandbox}/files/archive",
    summary: "Unpack a tar archive in a folder of a sandbox. If this fails midway, files that were already unpacked stay.",
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
} as const satisfies Record<string, Route & { path: Path }>;
