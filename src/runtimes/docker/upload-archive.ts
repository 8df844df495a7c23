import { Readable } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { AccountFiles } from "./accounts.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import { firstFile } from "./small-archive.ts";

const ACCOUNT_BYTES_MAX = 1024 * 1024;

/**
 * Unpacks an archive in a folder of a sandbox that has not started. Throws what the archive's making threw, or the
 * engine's refusal.
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
  // dockerode does not look at the body's errors: the request would wait for the rest for ever.
  body.on("error", (error) => {
    broken = error;
    aborting.abort();
  });
  const giveUp = () => body.destroy(new CaissonError("cancelled", "putting files into the sandbox was given up"));
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    if (signal?.aborted) giveUp();
    await engine.docker.getContainer(container).putArchive(body, { path: folder, abortSignal: aborting.signal });
  } catch (error) {
    if (broken instanceof CaissonError) throw broken;
    throw engineError(broken ?? error, { what: "putting files into the sandbox", socketPath: engine.socketPath });
  } finally {
    signal?.removeEventListener("abort", giveUp);
    body.destroy();
  }
}

/** The image's account files, as far as they are plain files of a sensible size. */
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
