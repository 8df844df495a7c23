import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Labels } from "../contract/ids.ts";
import { KnownFiles } from "../lib/known-files.ts";

/** What a sandbox is found by since somebody changed it, in the sandbox's folder. */
export const LABELS_NAME = "labels.json";
const LABELS_BYTES_MAX = 256 * 1024;
const knownLabels = new KnownFiles<{ labels?: Labels }>({ max: 4096 });

/** Nothing where none were changed; what cannot be read hides no sandbox, which has those that it was made with. */
export async function readLabels(dir: string): Promise<{ labels?: Labels }> {
  const path = join(dir, LABELS_NAME);
  const read = async ({ sizeBytes, isFile }: { sizeBytes: number; isFile: boolean }) =>
    isFile && sizeBytes <= LABELS_BYTES_MAX ? { labels: Labels.parse(JSON.parse(await readFile(path, "utf8"))) } : {};
  return (await knownLabels.get(path, read).catch(() => null)) ?? {};
}
