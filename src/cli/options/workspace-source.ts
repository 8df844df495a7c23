import { resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseCount } from "./option-values.ts";
import { hidingFrom } from "./parse-hiding.ts";

const REMOTE = /^([a-z][a-z0-9+.-]*:\/\/|[\w.-]+@[\w.-]+:)/i;

/** Returns the files that a run works on, according to its options. Throws `invalid`. */
export function sourceFrom(context: CliContext, args: ParsedArguments): WorkspaceSource {
  const repo = args.option("repo");
  if (args.flag("no-workspace")) return { kind: "empty" };
  if (repo !== undefined && REMOTE.test(repo)) {
    const depth = args.option("depth");
    const key = args.option("ssh-key");
    const places = args.options("submodules-from");
    if (places.length > 0 && !args.flag("submodules")) throw new CaissonError("invalid", "--submodules-from requires --submodules");
    return {
      kind: "git",
      url: repo,
      ...(args.option("branch") === undefined ? {} : { branch: args.option("branch") as string }),
      ...(args.option("ref") === undefined ? {} : { ref: args.option("ref") as string }),
      ...(depth === undefined ? {} : { depth: parseCount("depth", depth) }),
      submodules: args.flag("submodules"),
      ...(places.length === 0 ? {} : { submodulesFrom: [...places] }),
      ...(key === undefined ? {} : { keyPath: resolve(context.cwd, key) }),
    };
  }
  const misplaced = ["branch", "ref", "depth", "ssh-key", "submodules-from"].filter((name) => args.option(name) !== undefined);
  if (misplaced.length > 0)
    throw new CaissonError("invalid", `--${misplaced.join(" and --")} cannot be used with a folder`, {
      hint: "Use a git URL with --repo; the files of a folder are used as they are.",
    });
  const path = resolve(context.cwd, repo ?? ".");
  return { kind: "folder", path, hiding: hidingFrom(context, args) };
}
