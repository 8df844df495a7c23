import { z } from "zod";

/** Files of a sandbox in the HTTP API. */

const FileKind = z.enum(["file", "directory", "link", "fifo", "socket", "device"]);
export const FileEntry = z.object({
  /** Path relative to the listed folder; for a single file, the requested path. */
  name: z.string(),
  kind: FileKind,
  sizeBytes: z.number(),
  mode: z.int(),
  uid: z.int(),
  gid: z.int(),
  modifiedMs: z.number(),
  linkTarget: z.string().nullable(),
});
export const FileList = z.object({ entries: z.array(FileEntry), truncated: z.boolean() });

export const WatchedChange = z.object({
  /** `overflow`: there were too many changes to report them all. */
  kind: z.enum(["created", "modified", "removed", "movedHere", "attributes", "overflow"]),
  path: z.string(),
  isDirectory: z.boolean(),
});
