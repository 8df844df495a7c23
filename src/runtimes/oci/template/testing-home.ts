import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type HostTemplate, hostTemplate } from "./host-template.ts";

/** Creates a user's empty home, and the folder to remove after the test. */
export function makeHome(): { root: string; home: string } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "caisson-test-")));
  const home = join(root, "home/ada");
  mkdirSync(home, { recursive: true });
  return { root, home };
}

/** Writes files by their path relative to the home. A value that begins with `->` becomes a link. */
export function plantIn(home: string, files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    const at = join(home, path);
    mkdirSync(dirname(at), { recursive: true });
    if (content.startsWith("->")) symlinkSync(content.slice(2), at);
    else writeFileSync(at, content, { mode: 0o755 });
  }
}

/** Returns the template for a PATH of these folders in the home. */
export const templateOf = (home: string, path: readonly string[]): Promise<HostTemplate> =>
  hostTemplate({ home, path: path.map((entry) => join(home, entry)).join(":"), reserved: ["/proc"] });
