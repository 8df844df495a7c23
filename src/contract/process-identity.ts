import { z } from "zod";

/**
 * Identifies a process on one machine, so that others can tell whether it is still running. Pids are reused, but not
 * with the same start time in the same boot.
 */
export const ProcessIdentity = z.object({ pid: z.int().positive(), startTicks: z.int().nonnegative(), bootId: z.string().min(1).max(64) });
export type ProcessIdentity = z.infer<typeof ProcessIdentity>;

/** The same for processes of several machines. */
export const HostProcess = ProcessIdentity.extend({ host: z.string() });
export type HostProcess = z.infer<typeof HostProcess>;
