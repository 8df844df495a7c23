import { z } from "zod";
import { canonicalGit } from "../shell-commands.ts";
import type { Tool } from "../tool.ts";
import { runForModel } from "./command.ts";
import { BASH_CHARACTERS_MAX } from "./limits.ts";

const GIT_TIMEOUT_MS = 120_000;

const Arguments = z.strictObject({
  args: z.array(z.string().max(20_000)).min(1).max(200).describe('Such as ["status", "--short"] or ["commit", "-m", "Fix the parser"].'),
});

/**
 * Runs git on the workspace's repository, inside the sandbox like everything else. Arguments are passed unchanged,
 * without a shell.
 */
export const gitTool: Tool<z.infer<typeof Arguments>> = {
  name: "git",
  description: `Runs git in /workspace: status, diff, log, add, commit, branch, checkout, reset and all other commands. No shell, pager or editor. Returns at most ${BASH_CHARACTERS_MAX} characters.`,
  parameters: Arguments,
  parallel: false,
  repeatable: false,
  files: "any",
  resumable: true,
  subject: (args) => `git:${canonicalGit(args.args)}`,
  run: (args, context) =>
    runForModel(
      {
        argv: ["git", "-c", "safe.directory=*", "-c", "advice.detachedHead=false", "--no-pager", ...args.args],
        cwd: "/workspace",
        env: { GIT_EDITOR: "true", GIT_TERMINAL_PROMPT: "0", GIT_PAGER: "cat" },
        timeoutMs: GIT_TIMEOUT_MS,
      },
      context,
    ),
};
