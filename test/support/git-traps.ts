import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { expect } from "vitest";

/** What of the traps can be in a commit. */
export const ATTRIBUTES = "* filter=trap";

/**
 * What a git of the host's would run in the folder it is left in: hooks, a monitor, a filter. Each makes the file
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

/** That the traps are none for show: a git that knows nothing of them falls into them. The folder has a file in it. */
export async function expectTrapsToWork(mark: string, folder: string): Promise<void> {
  const git = "git -c user.name=one -c user.email=one@example.com";
  execFileSync("sh", ["-c", `git init --quiet && { ${trapsFor(mark)}; } && git add . && ${git} commit --quiet --message one`], {
    cwd: folder,
    stdio: "pipe",
  });
  expect(existsSync(mark)).toBe(true);
  await rm(mark);
}
