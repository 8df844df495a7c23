import { z } from "zod";

/**
 * A process of one machine, by which others can tell whether it still lives: its number may be used again, but not with
 * the same start in the same boot.
 */
export const ProcessIdentity = z.object({ pid: z.int().positive(), startTicks: z.int().nonnegative(), bootId: z.string().min(1).max(64) });
export type ProcessIdentity = z.infer<typeof ProcessIdentity>;

/** The same, where processes of several machines may meet. */
export const HostProcess = ProcessIdentity.extend({ host: z.string() });
export type HostProcess = z.infer<typeof HostProcess>;
