import { CaissonError } from "../../contract/error/error.ts";
import type { OwnRepository } from "../../workspace/git/make-commit.ts";
import { knownOf, takePack } from "../../workspace/git/packs.ts";
import type { GitRemote } from "../../workspace/git/remote.ts";

/**
 * Fetches a commit from the remote unless we have it. Throws as `GitRemote.fetch`, and `protocol` if the remote did not
 * send it.
 */
export async function bringCommit(
  commit: string,
  { own, remote, haves }: { own: OwnRepository; remote: GitRemote; haves: readonly string[] },
): Promise<void> {
  if ((await knownOf(own, [commit])).length > 0) return;
  await takePack(own, await remote.fetch({ wants: [commit], haves: await knownOf(own, haves) }));
  if ((await knownOf(own, [commit])).length === 0) throw new CaissonError("protocol", "the remote did not send the requested commit");
}
