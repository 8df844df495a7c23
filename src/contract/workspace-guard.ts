import { z } from "zod";

/**
 * A name (`*.pem`), which counts in every folder, or a path from the workspace's root (`config/prod.env`). `*` stands
 * for any part of a name.
 */
export const FilePattern = z
  .string()
  .min(1)
  .max(1024)
  .refine((pattern) => !pattern.includes("\0") && !pattern.split("/").includes(".."), "is not a pattern such as *.pem or config/prod.env");

/**
 * Which files of a folder are hidden inside, besides those that look like credentials. `show` wins over `hide` and over
 * what is hidden by default.
 */
export const HidingRules = z.strictObject({
  hide: z.array(FilePattern).max(100).default([]),
  show: z.array(FilePattern).max(100).default([]),
});
export type HidingRules = z.infer<typeof HidingRules>;

/** How a folder that somebody named is looked at before it is shown to a sandbox. */
export const FolderGuard = HidingRules.extend({
  /** Whether git's hooks and settings and shell start-up files may be written where the folder is given read-write. */
  allowHooks: z.boolean().default(false),
});
export type FolderGuard = z.infer<typeof FolderGuard>;

/** How a folder of the user's is looked at before it is the workspace of a sandbox. */
export const WorkspaceGuard = FolderGuard.extend({
  /**
   * Whether somebody named the folder; one that only happens to be the current folder is refused where that is most
   * likely a mistake.
   */
  named: z.boolean(),
});
export type WorkspaceGuard = z.infer<typeof WorkspaceGuard>;
