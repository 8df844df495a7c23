import { z } from "zod";

/** The processes of a sandbox, and what its folders in memory contained, in a folder of the host. */
export const MemoryImage = z.object({
  /** Only root can enter this folder. The images are in `images`. */
  dir: z.string(),
  /** The inode of the guest's socket to process 1, which the new sandbox replaces. */
  socket: z.int().positive(),
});
export type MemoryImage = z.infer<typeof MemoryImage>;
