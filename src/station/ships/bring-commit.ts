import { CaissonError } from "../../contract/error.ts";
import type { OwnRepository } from "../../workspace/git/make-commit.ts";
import { knownOf, takePack } from "../../workspace/git/packs.ts";
import type { GitRemote } from "../../workspace/git/remote.ts";

/**
 * Has a commit of the remote here, fetched if it is not. Throws as `GitRemote.fetch`, and `protocol` when it did not
 * come.
 */
export async function bringCommit(
  commit: string,
  { own, remote, haves }: { own: OwnRepository; remote: GitRemote; haves: readonly string[] },
): Promise<void> {
  if ((await knownOf(own, [commit])).length > 0) return;
  await takePack(own, await remote.fetch({ wants: [commit], haves: await knownOf(own, haves) }));
  if ((await knownOf(own, [commit])).length === 0) throw new CaissonError("protocol", "the remote did not send what was asked for");
}
