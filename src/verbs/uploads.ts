import { z } from "zod";
import { UploadDigest, UploadId } from "../contract/upload/upload.ts";
import { UploadView } from "../contract/upload/upload-verbs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

/** Folders uploaded from other machines to become workspaces. All verbs that take an id throw `not_found`. */
export const uploads = {
  /**
   * Stores a folder from a tar archive, atomically. A folder that is already stored is not stored twice. Nothing in the
   * archive is trusted. Throws `invalid` (also for a digest mismatch), `unsafe`, `too_large`, `busy` while too many
   * unused uploads are stored, `no_space`, `cancelled`.
   */
  put: verbOfType<
    (archive: AsyncIterable<Uint8Array>, options?: { digest?: string; owner?: string; signal?: AbortSignal }) => Promise<UploadView>
  >()({
    path: "POST /v1/uploads",
    /** The expected SHA-256 of the archive. */
    query: z.strictObject({ digest: UploadDigest.optional() }),
    body: "bytes",
    answer: { status: 201, json: UploadView },
    scope: "run",
    owned: "by hand",
    summary: "Upload a folder as a tar archive, for use as a workspace or a mount. Stores all of it or nothing.",
  }),
  /** Lists uploads, optionally only those with a digest or of an owner. */
  list: verbOfType<(options?: { digest?: string; owner?: string }) => Promise<UploadView[]>>()({
    path: "GET /v1/uploads",
    query: z.strictObject({ digest: UploadDigest.optional() }),
    answer: { json: z.object({ uploads: z.array(UploadView) }) },
    scope: "read",
    owned: "by hand",
    summary: "List uploads, or the caller's own with a digest.",
  }),
  get: verb({
    path: "GET /v1/uploads/{upload}",
    params: { upload: UploadId },
    gives: UploadView,
    scope: "read",
    owned: "upload",
    summary: "Get one upload.",
  }),
  /** Throws `conflict` while something uses it. */
  remove: verb({
    path: "DELETE /v1/uploads/{upload}",
    params: { upload: UploadId },
    scope: "run",
    owned: "upload",
    summary: "Remove an upload that nothing uses.",
  }),
  /** Removes uploads that have not been used for a while, and remains of interrupted ones. */
  sweep: verbOfType<() => Promise<void>>()({ owned: "everyone", withoutRoute: "the station does it regularly" }),
};

export type UploadVerbs = VerbsOf<typeof uploads>;
