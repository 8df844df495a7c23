import { z } from "zod";
import { UploadDigest, UploadId } from "./upload.ts";

/** Arguments and answers of the station's verbs for uploads. */

export const UploadView = z.object({
  id: UploadId,
  owner: z.string(),
  digest: UploadDigest,
  entries: z.int().nonnegative(),
  bytes: z.int().nonnegative(),
  createdAt: z.iso.datetime(),
  /** When it is removed if unused; null while it is in use. */
  expiresAt: z.iso.datetime().nullable(),
  /** Archive entries that were skipped: links that lead outside the folder, names that are not UTF-8. */
  skipped: z.array(z.object({ name: z.string(), reason: z.string() })),
});
export type UploadView = z.infer<typeof UploadView>;
