import { CaissonError } from "../../../contract/error.ts";
import type { ImageFetch } from "../../../contract/image-fetch.ts";
import { runProgram } from "./run-program.ts";

/** How images are fetched for owners other than the machine's user, whose credentials are not theirs. */
export type FetchImageFor = (request: ImageFetch) => Promise<void>;

/**
 * Fetches an image into an OCI layout folder that does not exist yet, by skopeo, with the credentials and policy the
 * user gave to that tool. Throws `unavailable` without skopeo or when the registry does not give the image,
 * `cancelled`, `timeout`.
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
    missing: { hint: "Install it with `apt install skopeo`, or give a folder or an archive instead of a name in a registry." },
  });
  if (outcome.exitCode === 0) return;
  throw new CaissonError("unavailable", `the image ${options.reference} could not be fetched: ${outcome.lastLine || "skopeo failed"}`, {
    hint: "Check the name and the network; `skopeo login` stores credentials for a registry.",
  });
}
