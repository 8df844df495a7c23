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
    // Claims about a station:
    "owners",
    "reach",
    "text",
    "room",
    "tokens",
    "headers",
    "previews",
    "client",
  ]),
  /** In order: tried and held; tried and failed; declared by the runtime, but not tried; could not be tried here. */
  verdict: z.enum(["observed", "failed", "declared", "unverifiable"]),
  /** What was attempted, as a sentence. */
  tried: z.string(),
  /** The result: for `failed` what broke, for the last two kinds the reason. Bounded. */
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
  /** The findings of the runtime's own probe, such as the version of the OCI runtime. */
  findings: z.array(z.string()),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  /** Whether no claim failed. */
  holds: z.boolean(),
  verdicts: z.array(AttackVerdict),
});
export type AttackReport = z.infer<typeof AttackReport>;

/**
 * A report with a detached Ed25519 signature over its canonical JSON. The key identifies the installation that created
 * it, but does not prove that the machine is honest.
 */
export const SignedReport = z.strictObject({
  report: AttackReport,
  signature: z.strictObject({ algorithm: z.literal("ed25519"), publicKey: z.string(), value: z.string() }),
});
export type SignedReport = z.infer<typeof SignedReport>;
