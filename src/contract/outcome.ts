import { z } from "zod";

/** How a process came to its end. A command's outcome is data; exceptions are for failures of the platform. */
export const Ended = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.literal("exited"), exitCode: z.int().min(0).max(255) }),
    z.object({ kind: z.literal("signaled"), signal: z.string() }),
    z.object({ kind: z.literal("timedOut") }),
    z.object({ kind: z.literal("killed"), why: z.enum(["memory", "output", "cancelled", "disk"]) }),
    /** The guest or the whole sandbox died; nobody knows how far the process came. */
    z.object({ kind: z.literal("lost") }),
  ])
  .and(
    z.object({
      durationMs: z.number().nonnegative(),
      stdoutBytes: z.int().nonnegative(),
      stderrBytes: z.int().nonnegative(),
      /** Out-of-memory kills seen in the sandbox while it ran; may be another process's. */
      memoryKills: z.int().nonnegative(),
    }),
  );
export type Ended = z.infer<typeof Ended>;
