import { CaissonError } from "../../../contract/error/error.ts";
import type { ImageFetch } from "../../../contract/image/image-fetch.ts";
import { runProgram } from "./run-program.ts";

/** Fetches images for owners other than the machine's user, without that user's credentials. */
export type FetchImageFor = (request: ImageFetch) => Promise<void>;

/**
 * Fetches an image with skopeo into an OCI layout folder that does not exist yet, with the credentials and the policy
 * that the user configured for skopeo. Throws `unavailable` if skopeo is missing or the registry does not provide the
 * image, `cancelled`, `timeout`.
 */
export async function fetchImage(options: {
  reference: string;
  layout: string;
  env: Readonly<Record<string, string>>;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}): Promise<void> {
  const outcome = await runProgram({
    argv: ["skopeo", "copy", "--quiet", "--", `docker://${options.reference}`, `oci:${options.layout}:image`],
    env: options.env,
    timeoutMs: options.timeoutMs,
    signal: options.signal,
    missing: { hint: "Install it with `apt install skopeo`, or use a folder or an archive instead of a name in a registry." },
  });
  if (outcome.exitCode === 0) return;
  throw new CaissonError("unavailable", `the image ${options.reference} could not be fetched: ${outcome.lastLine || "skopeo failed"}`, {
    hint: "Check the name and the network; `skopeo login` stores credentials for a registry.",
  });
}
