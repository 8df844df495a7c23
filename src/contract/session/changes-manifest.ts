import { z } from "zod";
import { WorkspaceSource } from "./session.ts";
import { LeftOut } from "./session-verbs.ts";

/**
 * The changes of a session or sandbox as a station transfers them: an archive of `manifest.json`, followed by each
 * distinct content as `content/` and its digest. The reader validates everything again.
 */

export const MANIFEST_NAME = "manifest.json";
export const CONTENT_PREFIX = "content/";
/** The same limit as in a diff, which reports what exceeds it. */
export const MANIFEST_FILES_MAX = 40_000;

/** A file on one side of a change. */
const ManifestSide = z.strictObject({
  kind: z.enum(["file", "link"]),
  mode: z.union([z.literal(0o644), z.literal(0o755), z.literal(0o777)]),
  bytes: z
    .int()
    .nonnegative()
    .max(64 * 1024 * 1024),
  /** SHA-256 of the content, or of a link's target. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
});
export type ManifestSide = z.infer<typeof ManifestSide>;

export const ChangesManifest = z.strictObject({
  version: z.literal(1),
  /** A session or sandbox id. */
  id: z.string().min(1).max(128),
  kind: z.enum(["session", "sandbox"]),
  /** The source of its workspace. */
  source: WorkspaceSource,
  /** The commit at which a git workspace began. */
  commit: z
    .string()
    .regex(/^[0-9a-f]{40,64}$/)
    .nullable(),
  files: z
    .array(
      z.strictObject({
        path: z.string().min(1).max(4096),
        /** The file when the workspace began. The archive has its content only if it was requested. */
        before: ManifestSide.nullable(),
        after: ManifestSide.nullable(),
        /**
         * The git hash of the version that was applied from here before; empty for a file whose removal was applied.
         */
        applied: z.string().max(64).nullable(),
      }),
    )
    .max(MANIFEST_FILES_MAX),
  leftOut: z.array(LeftOut).max(MANIFEST_FILES_MAX),
  ignored: z.int().nonnegative(),
});
export type ChangesManifest = z.infer<typeof ChangesManifest>;
