import { z } from "zod";

/** How a process ended. A command's outcome is data; exceptions are for failures of the platform. */
export const Ended = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.literal("exited"), exitCode: z.int().min(0).max(255) }),
    z.object({ kind: z.literal("signaled"), signal: z.string() }),
    z.object({ kind: z.literal("timedOut") }),
    z.object({ kind: z.literal("killed"), why: z.enum(["memory", "output", "cancelled", "disk"]) }),
    /** The guest or the whole sandbox died; it is unknown how far the process got. */
    z.object({ kind: z.literal("lost") }),
  ])
  .and(
    z.object({
      durationMs: z.number().nonnegative(),
      stdoutBytes: z.int().nonnegative(),
      stderrBytes: z.int().nonnegative(),
      /** Out-of-memory kills in the sandbox while the process ran; they may have hit other processes. */
      memoryKills: z.int().nonnegative(),
    }),
  );
export type Ended = z.infer<typeof Ended>;

/** How a run can end. `budget` only if a person declined to raise it. */
export const FinishReason = z.enum(["done", "max_steps", "timeout", "budget", "cancelled", "stuck", "error"]);
export type FinishReason = z.infer<typeof FinishReason>;
