import { z } from "zod";
import { UploadDigest, UploadId } from "../upload.ts";
import { UploadView } from "../upload-verbs.ts";
import type { Route } from "./route.ts";

const params = { upload: UploadId };

export const uploadRoutes = {
  "uploads.put": {
    summary: "Send a folder as a tar archive, to be a workspace or a mount: all of it is kept, or nothing.",
    scope: "run",
    /** What the archive's SHA-256 must be. */
    query: z.strictObject({ digest: UploadDigest.optional() }),
    body: "bytes",
    answer: { status: 201, json: UploadView },
  },
  "uploads.list": {
    summary: "List uploads, or the caller's own with a digest.",
    scope: "read",
    query: z.strictObject({ digest: UploadDigest.optional() }),
    answer: { json: z.object({ uploads: z.array(UploadView) }) },
  },
  "uploads.get": { summary: "One upload.", scope: "read", params, answer: { json: UploadView } },
  "uploads.remove": { summary: "Remove an upload that nothing uses.", scope: "run", params, answer: {} },
} as const satisfies Record<string, Route>;
