import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { expect } from "vitest";

/** The part of the traps that a commit can contain. */
export const ATTRIBUTES = "* filter=trap";

/**
 * Returns a script that sets traps for a git command on the host: hooks, a monitor and a filter. Each creates the file
 * `mark`, in a folder that no sandbox has.
 */
export function trapsFor(mark: string): string {
  const hooks = "pre-commit commit-msg post-commit post-checkout pre-merge-commit post-merge post-rewrite pre-push reference-transaction";
  return [
    `printf '#!/bin/sh\\ntouch ${mark}\\nexit 0\\n' > /tmp/hook`,
    `for hook in ${hooks}; do install -D -m 755 /tmp/hook .git/hooks/$hook; done`,
    ...["core.fsmonitor", "core.sshCommand", "core.pager", "diff.external"].map((name) => `git config ${name} 'touch ${mark}; true'`),
    ...["clean", "smudge"].map((name) => `git config filter.trap.${name} 'touch ${mark}; cat'`),
    `echo '${ATTRIBUTES}' >> .gitattributes`,
  ].join("; ");
}

/** Proves that the traps work: an ordinary git command triggers them. The folder contains a file. */
export async function expectTrapsToWork(mark: string, folder: string): Promise<void> {
  const git = "git -c user.name=one -c user.email=one@example.com";
  execFileSync("sh", ["-c", `git init --quiet && { ${trapsFor(mark)}; } && git add . && ${git} commit --quiet --message one`], {
    cwd: folder,
    stdio: "pipe",
  });
  expect(existsSync(mark)).toBe(true);
  await rm(mark);
}
