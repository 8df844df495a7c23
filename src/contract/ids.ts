import { z } from "zod";
import { ENV_NAME } from "./env-name.ts";

/** `sb_` and 12 lower-case base-32 characters: fits a host name, a cgroup name and a socket path. */
export const SandboxId = z.string().regex(/^sb_[a-z2-7]{12}$/, "a sandbox id looks like sb_k3v7q2m5x4ab");
export type SandboxId = z.infer<typeof SandboxId>;

export const SnapshotId = z.string().regex(/^sn_[a-z2-7]{12}$/, "a snapshot id looks like sn_k3v7q2m5x4ab");
export type SnapshotId = z.infer<typeof SnapshotId>;

/**
 * A name that somebody chose for a sandbox, a run, a session or a snapshot: it works wherever an id does. What begins
 * like an id is one, so that the two are never confused.
 */
export const ChosenName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "a name is 1 to 64 lower-case letters, digits, dots, dashes or underscores, and begins with a letter or digit",
  )
  .refine((name) => !/^(?:sb|sn|run|ses)_/.test(name), "a name does not begin with sb_, sn_, ses_ or run_, as ids do");
export type ChosenName = z.infer<typeof ChosenName>;

/** What somebody wants to find things by. A key has no `=`, so that `KEY=VALUE` is read in one way. */
const LABELS_MAX = 64;
export const LabelKey = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[^=]+$/, "a label's key has no =");
export const LabelValue = z.string().max(256);
export const Labels = z
  .record(LabelKey, LabelValue)
  .refine((labels) => Object.keys(labels).length <= LABELS_MAX, `at most ${LABELS_MAX} labels`)
  .meta({ maxProperties: LABELS_MAX });
export type Labels = z.infer<typeof Labels>;

/** Names a process inside a sandbox; chosen by the host, remembered by the guest. */
export const ProcessRef = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/, "1 to 64 letters, digits or . _ : -");
export type ProcessRef = z.infer<typeof ProcessRef>;

export const RuntimeName = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, "lower-case letters, digits and dashes");
export type RuntimeName = z.infer<typeof RuntimeName>;

/** A variable's name. */
const ENV_NAME_CHARACTERS_MAX = 1024;
export const EnvName = z.string().max(ENV_NAME_CHARACTERS_MAX).regex(ENV_NAME, "a variable's name is letters, digits and _");
