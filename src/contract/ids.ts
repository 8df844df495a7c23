import { z } from "zod";
import { ENV_NAME } from "./env-name.ts";

/** `sb_` and 12 lower-case base-32 characters: valid in a host name, a cgroup name and a socket path. */
export const SandboxId = z.string().regex(/^sb_[a-z2-7]{12}$/, "a sandbox id looks like sb_k3v7q2m5x4ab");
export type SandboxId = z.infer<typeof SandboxId>;

export const SnapshotId = z.string().regex(/^sn_[a-z2-7]{12}$/, "a snapshot id looks like sn_k3v7q2m5x4ab");
export type SnapshotId = z.infer<typeof SnapshotId>;

export const RunId = z.string().regex(/^run_[a-z2-7]{12}$/, "a run id looks like run_k3v7q2m5x4ab");
export type RunId = z.infer<typeof RunId>;

/** Chosen by a user or derived from the run's id. Also used as a folder name. */
export const SessionId = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "must be 1 to 64 lower-case letters, digits, dots, dashes or underscores, and not begin with a dot",
  );
export type SessionId = z.infer<typeof SessionId>;

export const TemplateId = z.string().regex(/^tpl_[a-z2-7]{12}$/, "a template id looks like tpl_k3v7q2m5x4ab");
export type TemplateId = z.infer<typeof TemplateId>;

/** A template's id, a prefix of it, or one of its names. */
export const TemplateWord = z.string().min(1).max(200);

/**
 * A name that a user chose for a sandbox, run, session or snapshot; it works wherever an id does. A name must not begin
 * like an id, so the two are never confused.
 */
export const ChosenName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "must be 1 to 64 lower-case letters, digits, dots, dashes or underscores, and begin with a letter or digit",
  )
  .refine((name) => !/^(?:sb|sn|run|ses)_/.test(name), "must not begin with sb_, sn_, ses_ or run_, as ids do");
export type ChosenName = z.infer<typeof ChosenName>;

/** User-defined labels for filtering. A key contains no `=`, so `KEY=VALUE` is unambiguous. */
const LABELS_MAX = 64;
export const LabelKey = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[^=]+$/, "must not contain =");
export const LabelValue = z.string().max(256);
export const Labels = z
  .record(LabelKey, LabelValue)
  .refine((labels) => Object.keys(labels).length <= LABELS_MAX, `must have at most ${LABELS_MAX} entries`)
  .meta({ maxProperties: LABELS_MAX });
export type Labels = z.infer<typeof Labels>;

/** Identifies a process inside a sandbox. The host chooses it, and the guest remembers it. */
export const ProcessRef = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/, "must be 1 to 64 letters, digits or . _ : -");
export type ProcessRef = z.infer<typeof ProcessRef>;

export const RuntimeName = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, "must be lower-case letters, digits and dashes");
export type RuntimeName = z.infer<typeof RuntimeName>;

/** The name of an environment variable. */
const ENV_NAME_CHARACTERS_MAX = 1024;
export const EnvName = z.string().max(ENV_NAME_CHARACTERS_MAX).regex(ENV_NAME, "must be a variable name: letters, digits and _");
