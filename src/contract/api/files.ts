import { z } from "zod";

/** Files of a sandbox, as the HTTP API shows them. */

const FileKind = z.enum(["file", "directory", "link", "fifo", "socket", "device"]);
export const FileEntry = z.object({
  /** Relative to the folder that was listed; of a single file, the path that was asked for. */
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
  /** `overflow`: more changed than could be told. */
  kind: z.enum(["created", "modified", "removed", "movedHere", "attributes", "overflow"]),
  path: z.string(),
  isDirectory: z.boolean(),
});
