import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { hidingFrom } from "./hiding-asked.ts";
import { parseCount } from "./option-values.ts";

const REMOTE = /^([a-z][a-z0-9+.-]*:\/\/|[\w.-]+@[\w.-]+:)/i;

/** What a run works on, as its options say. Throws `invalid`. */
export function sourceFrom(context: CliContext, given: ParsedArguments): WorkspaceSource {
  const repo = given.option("repo");
  if (given.flag("no-workspace")) return { kind: "empty" };
  if (repo !== undefined && REMOTE.test(repo)) {
    const depth = given.option("depth");
    const key = given.option("ssh-key");
    const places = given.options("submodules-from");
    if (places.length > 0 && !given.flag("submodules")) throw new CaissonError("invalid", "--submodules-from goes with --submodules");
    return {
      kind: "git",
      url: repo,
      ...(given.option("branch") === undefined ? {} : { branch: given.option("branch") as string }),
      ...(given.option("ref") === undefined ? {} : { ref: given.option("ref") as string }),
      ...(depth === undefined ? {} : { depth: parseCount("depth", depth) }),
      submodules: given.flag("submodules"),
      ...(places.length === 0 ? {} : { submodulesFrom: [...places] }),
      ...(key === undefined ? {} : { keyPath: resolve(context.cwd, key) }),
    };
  }
  const misplaced = ["branch", "ref", "depth", "ssh-key", "submodules-from"].filter((name) => given.option(name) !== undefined);
  if (misplaced.length > 0)
    throw new CaissonError("invalid", `--${misplaced.join(" and --")} goes with a git address, not with a folder`, {
      hint: "Give the address with --repo; a folder is taken as it is.",
    });
  const path = resolve(context.cwd, repo ?? ".");
  return { kind: "folder", path, hiding: hidingFrom(context, given) };
}
