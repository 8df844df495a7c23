import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Labels } from "../contract/ids.ts";

/** What a sandbox is found by since somebody changed it, in the sandbox's folder. */
export const LABELS_NAME = "labels.json";
const LABELS_BYTES_MAX = 256 * 1024;

/** Nothing where none were changed; what cannot be read hides no sandbox, which has those that it was made with. */
export async function readLabels(dir: string): Promise<{ labels?: Labels }> {
  const path = join(dir, LABELS_NAME);
  const stat = await lstat(path).catch(() => null);
  if (stat === null || !stat.isFile() || stat.size > LABELS_BYTES_MAX) return {};
  try {
    return { labels: Labels.parse(JSON.parse(await readFile(path, "utf8"))) };
  } catch {
    return {};
  }
}
