import { Readable } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { AccountFiles } from "./accounts.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import { firstFile } from "./small-archive.ts";

const ACCOUNT_BYTES_MAX = 1024 * 1024;

/**
 * Unpacks an archive into a folder of a sandbox that has not started. Throws the error of the archive or of the engine.
 */
export async function uploadArchive(options: {
  engine: Engine;
  container: string;
  folder: string;
  archive: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
  signal?: AbortSignal | undefined;
}): Promise<void> {
  const { engine, container, folder, archive, signal } = options;
  const aborting = new AbortController();
  let broken: unknown;
  const body = Readable.from(archive, { objectMode: false });
  // dockerode ignores errors of the body: the request would wait for the rest indefinitely.
  body.on("error", (error) => {
    broken = error;
    aborting.abort();
  });
  const giveUp = () => body.destroy(new CaissonError("cancelled", "the upload into the sandbox was cancelled"));
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    if (signal?.aborted) giveUp();
    await engine.docker.getContainer(container).putArchive(body, { path: folder, abortSignal: aborting.signal });
  } catch (error) {
    if (broken instanceof CaissonError) throw broken;
    throw engineError(broken ?? error, { what: "uploading files into the sandbox", socketPath: engine.socketPath });
  } finally {
    signal?.removeEventListener("abort", giveUp);
    body.destroy();
  }
}

/** Reads the image's account files. Null for one that is missing, too large or not a regular file. */
export async function accountFilesOf(options: { engine: Engine; container: string }): Promise<AccountFiles> {
  const [passwd, group] = await Promise.all(["/etc/passwd", "/etc/group"].map((path) => smallFile({ ...options, path })));
  return { passwd: passwd ?? null, group: group ?? null };
}

async function smallFile({ engine, container, path }: { engine: Engine; container: string; path: string }): Promise<string | null> {
  try {
    const stream = (await engine.docker.getContainer(container).getArchive({ path })) as Readable;
    try {
      return await firstFile(stream, { bytesMax: ACCOUNT_BYTES_MAX });
    } finally {
      stream.destroy();
    }
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw engineError(error, { what: `reading the image's ${path}`, socketPath: engine.socketPath });
  }
}
