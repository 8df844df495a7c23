import { z } from "zod";
import { HidingRules } from "../workspace/workspace-guard.ts";

/** Folders that were sent to a station from other machines. */

export const UploadId = z.string().regex(/^up_[a-z2-7]{12}$/, "an upload id looks like up_k3v7q2m5x4ab");
export type UploadId = z.infer<typeof UploadId>;

/** SHA-256 of the archive. */
export const UploadDigest = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits");

/** A machine that sends folders. It generates its id once; the id is not secret. */
export const MachineId = z.string().regex(/^[a-z2-7]{26}$/, "must be 26 letters and digits");

/** The origin of an uploaded folder. The station only stores it; the client on that machine recognizes it. */
export const FolderOrigin = z.strictObject({
  machine: MachineId,
  /** A host name for display. */
  host: z.string().min(1).max(255),
  /** Absolute path, with links resolved. */
  folder: z.string().startsWith("/").max(4096),
  /** The rules for files that were not sent, in addition to those that look like credentials. */
  hiding: HidingRules.optional(),
});
export type FolderOrigin = z.infer<typeof FolderOrigin>;
