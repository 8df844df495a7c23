import { z } from "zod";

export const AttackVerdict = z.strictObject({
  id: z.string(),
  title: z.string(),
  group: z.enum([
    "isolation",
    "host trust",
    "network",
    "exhaustion",
    "faults",
    // Of a station:
    "owners",
    "reach",
    "text",
    "room",
    "tokens",
    "headers",
    "previews",
    "client",
  ]),
  /**
   * Tried, and the wall held; tried, and it did not; the runtime says so, and nothing was tried; it could not be tried
   * here.
   */
  verdict: z.enum(["observed", "failed", "declared", "unverifiable"]),
  /** What was done, as a sentence. */
  tried: z.string(),
  /** What came of it; for `failed` what broke, for the last two kinds the reason. Bounded. */
  seen: z.string(),
  durationMs: z.number(),
});
export type AttackVerdict = z.infer<typeof AttackVerdict>;

export const AttackReport = z.strictObject({
  kind: z.literal("caisson.attack-report"),
  version: z.literal(1),
  runtime: z.string(),
  isolation: z.int(),
  versions: z.strictObject({ caisson: z.string(), node: z.string(), kernel: z.string(), architecture: z.string() }),
  /** What the runtime's own probe said, such as the version of the OCI runtime. */
  findings: z.array(z.string()),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  /** No claim failed. */
  holds: z.boolean(),
  verdicts: z.array(AttackVerdict),
});
export type AttackReport = z.infer<typeof AttackReport>;

/**
 * A report with a detached Ed25519 signature over its canonical JSON. The key says which installation made it, not that
 * the machine is honest.
 */
export const SignedReport = z.strictObject({
  report: AttackReport,
  signature: z.strictObject({ algorithm: z.literal("ed25519"), publicKey: z.string(), value: z.string() }),
});
export type SignedReport = z.infer<typeof SignedReport>;
