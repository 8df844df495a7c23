import { CaissonError } from "../../../contract/error/error.ts";
import { commitTree, type OwnRepository } from "../../../workspace/git/make-commit.ts";
import { isAncestor, mergedTree, packOf } from "../../../workspace/git/packs.ts";
import type { GitRemote } from "../../../workspace/git/remote.ts";
import { bringCommit } from "../bring-commit.ts";
import type { Forge, NewRequest, RequestView } from "./forge.ts";

const FILE = "merge-request.json";

export interface PlainForgeOptions {
  /** The ship that the request belongs to; the ref carries its id. */
  ship: string;
  remote: GitRemote;
  /** The remote's address for display. */
  address: string;
  own: OwnRepository;
  author: { name: string; email: string };
  /** The creation time. It is part of the commit, so the same request always yields the same commit. */
  at: string;
}

/**
 * Handles merge requests without a forge. A request is a ref, `refs/merge-requests/ID`, whose commit has one file that
 * describes it, and whose parent is the commit to merge. We merge the objects ourselves if there is no conflict, and
 * otherwise not at all.
 */
export function createPlainForge(options: PlainForgeOptions): Forge {
  const { ship, remote, own, author, at } = options;
  const ref = `refs/merge-requests/${ship}`;
  const view = (state: RequestView["state"], head: string, more: Partial<RequestView> = {}): RequestView => ({
    id: ref,
    url: `${options.address}#${ref}`,
    state,
    head,
    mergeable: "yes",
    why: null,
    ...more,
  });
  const look: Forge["look"] = async (_id, request) => {
    const { refs } = await remote.refs();
    const tip = refs.get(`refs/heads/${request.into}`);
    if (tip === undefined) throw noBranch(request.into);
    await bringCommit(tip, { own, remote, haves: [request.commit] });
    if (await isAncestor(own, request.commit, tip)) return view("merged", request.commit);
    const there = refs.get(ref);
    if (there === undefined) return view("closed", request.commit);
    if (there !== (await describe(request))) return view("open", "");
    const merged = await mergedTree(own, tip, request.commit);
    if ("tree" in merged) return view("open", request.commit);
    const files = merged.conflicts.slice(0, 5).join(", ");
    return view("open", request.commit, { mergeable: "no", why: `it conflicts with ${request.into}${files === "" ? "" : ` in ${files}`}` });
  };
  const describe = (request: NewRequest) => describeRequest(request, { own, author, at });
  return {
    look,
    find: async () => ((await remote.refs()).refs.has(ref) ? view("open", "") : null),
    async open(request) {
      const to = await describe(request);
      const there = (await remote.refs()).refs.get(ref) ?? null;
      if (there !== to) await remote.push([{ ref, from: there, to }], await packOf(own, { wants: [to], haves: [request.commit] }));
      return view("open", request.commit);
    },
    async merge(_id, { into, commit, title }) {
      const target = `refs/heads/${into}`;
      const tip = (await remote.refs()).refs.get(target);
      if (tip === undefined) throw noBranch(into);
      await bringCommit(tip, { own, remote, haves: [commit] });
      if (await isAncestor(own, commit, tip)) return;
      const merged = await mergedTree(own, tip, commit);
      if (!("tree" in merged)) throw new CaissonError("conflict", `it conflicts with ${into}`, { details: { files: merged.conflicts } });
      const message = `Merge: ${title}\n`;
      const to = await commitTree({ own, tree: merged.tree, parents: [tip, commit], message, author, at });
      await remote.push([{ ref: target, from: tip, to }], await packOf(own, { wants: [to], haves: [tip, commit] }));
    },
    async close() {
      const from = (await remote.refs()).refs.get(ref);
      if (from !== undefined) await remote.push([{ ref, from, to: null }], null);
    },
    ownRefs: () => [ref],
  };
}

/** Creates the commit with the file that describes a request. */
async function describeRequest(
  { title, body, branch, into, commit }: NewRequest,
  { own, author, at }: Pick<PlainForgeOptions, "own" | "author" | "at">,
): Promise<string> {
  const content = `${JSON.stringify({ title, body, branch, into, commit, at }, null, 2)}\n`;
  const blob = (await own.git(["hash-object", "-w", "--stdin", "--no-filters"], { input: content })).toString("utf8").trim();
  const tree = (await own.git(["mktree"], { input: `100644 blob ${blob}\t${FILE}\n` })).toString("utf8").trim();
  return await commitTree({ own, tree, parents: [commit], message: `Merge request: ${title}\n`, author, at });
}

function noBranch(into: string): CaissonError {
  return new CaissonError("not_found", `the remote has no branch ${into}`, { hint: "Name another branch with --into." });
}
