import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Labels } from "../contract/ids.ts";
import { ignore } from "../lib/failures.ts";
import { KnownFiles } from "../lib/known-files.ts";

/** The file in a sandbox's folder with the labels that were set after its creation. */
export const LABELS_NAME = "labels.json";
const LABELS_BYTES_MAX = 256 * 1024;
const knownLabels = new KnownFiles<{ labels?: Labels }>({ max: 4096 });

/**
 * Reads the changed labels. Returns an empty object if no labels were changed or the file is unreadable: then the
 * sandbox has the labels it was created with.
 */
export async function readLabels(dir: string): Promise<{ labels?: Labels }> {
  const path = join(dir, LABELS_NAME);
  const read = async ({ sizeBytes, isFile }: { sizeBytes: number; isFile: boolean }) =>
    isFile && sizeBytes <= LABELS_BYTES_MAX ? { labels: Labels.parse(JSON.parse(await readFile(path, "utf8"))) } : {};
  return (await ignore(knownLabels.get(path, read), "a damaged file must not hide the sandbox")) ?? {};
}
