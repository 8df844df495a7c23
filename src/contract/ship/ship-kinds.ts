/** This file has no schemas, because neither help nor a list of ships loads schemas. */

/** The prefix of the branch name. */
export const branchKinds = ["feature", "fix", "hotfix", "refactor", "docs", "test", "chore"] as const;

/** The API for pull requests. `git` uses none: a merge request is a ref with a file. */
export const forgeKinds = ["github", "gitea", "git"] as const;
