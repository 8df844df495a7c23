import { z } from "zod";
import { WorkspaceSource } from "./session.ts";
import { LeftOut } from "./session-verbs.ts";

/**
 * The changes of a session or sandbox as a station gives them away: an archive of `manifest.json`, then of each content
 * once, as `content/` and its digest. Whoever reads it checks everything again.
 */

export const MANIFEST_NAME = "manifest.json";
export const CONTENT_PREFIX = "content/";
/** As in a diff: beyond them it says so. */
export const MANIFEST_FILES_MAX = 40_000;

/** A file on one side of a change. */
const ManifestSide = z.strictObject({
  kind: z.enum(["file", "link"]),
  mode: z.union([z.literal(0o644), z.literal(0o755), z.literal(0o777)]),
  bytes: z
    .int()
    .nonnegative()
    .max(64 * 1024 * 1024),
  /** SHA-256 of the content; of a link, of where it leads. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
});
export type ManifestSide = z.infer<typeof ManifestSide>;

export const ChangesManifest = z.strictObject({
  version: z.literal(1),
  /** A session's or a sandbox's. */
  id: z.string().min(1).max(128),
  kind: z.enum(["session", "sandbox"]),
  /** Where its workspace comes from. */
  source: WorkspaceSource,
  /** The commit that a git workspace began at. */
  commit: z
    .string()
    .regex(/^[0-9a-f]{40,64}$/)
    .nullable(),
  files: z
    .array(
      z.strictObject({
        path: z.string().min(1).max(4096),
        /** As it was when the workspace began; its content is in the archive only when it was asked for. */
        before: ManifestSide.nullable(),
        after: ManifestSide.nullable(),
        /** Git's name of what was brought home from here before; empty for a file that was removed there. */
        applied: z.string().max(64).nullable(),
      }),
    )
    .max(MANIFEST_FILES_MAX),
  leftOut: z.array(LeftOut).max(MANIFEST_FILES_MAX),
  ignored: z.int().nonnegative(),
});
export type ChangesManifest = z.infer<typeof ChangesManifest>;
