import { z } from "zod";
import type { Connection } from "../connection.ts";
import { ApiRequest, callForge, chosenRequest, type ForgeApi, forgePlace, pullRequests, stateOf } from "./api-forge.ts";
import type { Forge, RequestView } from "./forge.ts";

/** Readable reasons for states in which GitHub refuses a merge, or in which merging would be rash. */
const hindrances: ReadonlyMap<string, string> = new Map(
  Object.entries({
    dirty: "it conflicts with the target branch",
    blocked: "the repository's rules do not allow it yet: a review or a check is missing",
    draft: "it is a draft",
  }),
);

/** Creates a client of GitHub's REST API. */
export function createGithub(remote: string, connection: Connection): Forge {
  const { origin, owner, name } = forgePlace(remote);
  const isPublic = new URL(origin).hostname === "github.com";
  const api: ForgeApi = {
    connection,
    base: `${isPublic ? "https://api.github.com" : `${origin}/api/v3`}/repos/${owner}/${name}`,
    headers: { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" },
    authorization: (token) => `Bearer ${token}`,
  };
  const find: Forge["find"] = async (request) => {
    const query = new URLSearchParams({ head: `${owner}:${request.branch}`, base: request.into, state: "all", per_page: "100" });
    const call = { what: "looking for the pull request", method: "GET", path: `/pulls?${query}` } as const;
    const found = chosenRequest(await callForge(api, call, z.array(ApiRequest)), request);
    return found === null ? null : view(found);
  };
  return {
    find,
    ...pullRequests(api, { find, view }),
    async merge(id, { commit }) {
      const body = { sha: commit, merge_method: "merge" };
      await callForge(api, { what: "merging", method: "PUT", path: `/pulls/${id}/merge`, body }, z.object({ merged: z.boolean() }));
    },
    ownRefs: () => [],
  };
}

function view(request: ApiRequest): RequestView {
  const { number, html_url: url, head, mergeable, mergeable_state: condition } = request;
  const why = hindrances.get(condition ?? "") ?? (mergeable === false ? "GitHub reports that it cannot be merged" : null);
  // While it is `blocked`, the missing review or check may still arrive.
  const isPending = mergeable == null || condition === "unknown" || condition === "blocked";
  return {
    id: String(number),
    url,
    state: stateOf(request),
    head: head.sha,
    mergeable: mergeable === false || condition === "dirty" || condition === "draft" ? "no" : isPending ? "unknown" : "yes",
    why,
  };
}
