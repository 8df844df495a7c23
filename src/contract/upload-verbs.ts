import { z } from "zod";
import { SandboxPath } from "./sandbox.ts";
import { FolderOrigin, UploadDigest, UploadId } from "./upload.ts";

/** Arguments and answers of the station's verbs about uploads. */

export const UploadView = z.object({
  id: UploadId,
  owner: z.string(),
  digest: UploadDigest,
  entries: z.int().nonnegative(),
  bytes: z.int().nonnegative(),
  createdAt: z.iso.datetime(),
  /** When it goes unless something uses it; null while something does. */
  expiresAt: z.iso.datetime().nullable(),
  /** What of the archive was not taken: links that lead out of the folder, names that are not UTF-8. */
  skipped: z.array(z.object({ name: z.string(), reason: z.string() })),
});
export type UploadView = z.infer<typeof UploadView>;

/** An uploaded folder as a sandbox's workspace. Nothing that happens in it comes back by itself. */
export const UploadedWorkspace = z.strictObject({
  upload: UploadId,
  access: z.enum(["overlay", "ro"]).default("overlay"),
  origin: FolderOrigin,
});
export type UploadedWorkspace = z.infer<typeof UploadedWorkspace>;

export const UploadedMount = z.strictObject({ upload: UploadId, target: SandboxPath, access: z.enum(["overlay", "ro"]).default("ro") });
export type UploadedMount = z.infer<typeof UploadedMount>;
