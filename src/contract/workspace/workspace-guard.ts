import { z } from "zod";

/**
 * A name (`*.pem`), which matches in every folder, or a path from the workspace's root (`config/prod.env`). `*` matches
 * any part of a name.
 */
export const FilePattern = z
  .string()
  .min(1)
  .max(1024)
  .refine((pattern) => !pattern.includes("\0") && !pattern.split("/").includes(".."), "is not a pattern such as *.pem or config/prod.env");

/**
 * Which files of a folder are hidden inside, in addition to those that look like credentials. `show` overrides `hide`
 * and the files hidden by default.
 */
export const HidingRules = z.strictObject({
  hide: z.array(FilePattern).max(100).default([]),
  show: z.array(FilePattern).max(100).default([]),
});
export type HidingRules = z.infer<typeof HidingRules>;

/** How to check a folder that the user named before it is shown to a sandbox. */
export const FolderGuard = HidingRules.extend({
  /** Whether git hooks and settings and shell start-up files may be written in a read-write folder. */
  allowHooks: z.boolean().default(false),
});
export type FolderGuard = z.infer<typeof FolderGuard>;

/** How to check one of the user's folders before it becomes a sandbox's workspace. */
export const WorkspaceGuard = FolderGuard.extend({
  /**
   * Whether the user named the folder. A folder that is merely the current one is refused if it is probably a mistake.
   */
  named: z.boolean(),
});
export type WorkspaceGuard = z.infer<typeof WorkspaceGuard>;
