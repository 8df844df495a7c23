import { z } from "zod";
import { HidingRules } from "./workspace-guard.ts";

/** Folders of other machines, as they were sent to a station. */

export const UploadId = z.string().regex(/^up_[a-z2-7]{12}$/, "an upload's id looks like up_k3v7q2m5x4ab");
export type UploadId = z.infer<typeof UploadId>;

/** SHA-256 of the archive. */
export const UploadDigest = z.string().regex(/^[0-9a-f]{64}$/, "a digest is 64 hexadecimal digits");

/** A machine from which folders are sent; made up by it once, and never secret. */
export const MachineId = z.string().regex(/^[a-z2-7]{26}$/, "a machine's id is 26 letters and digits");

/** Where an uploaded folder is at home. The station only keeps it: whoever asks from there knows it again. */
export const FolderOrigin = z.strictObject({
  machine: MachineId,
  /** For people. */
  host: z.string().min(1).max(255),
  /** Absolute, without links. */
  folder: z.string().startsWith("/").max(4096),
  /** What of it was not sent, besides what looks like a credential. */
  hiding: HidingRules.optional(),
});
export type FolderOrigin = z.infer<typeof FolderOrigin>;
