import { z } from "zod";
import type { Connection } from "../connection.ts";
import { ApiRequest, callForge, chosenRequest, type ForgeApi, forgePlace, pullRequests, stateOf } from "./api-forge.ts";
import type { Forge, RequestView } from "./forge.ts";

const PAGE = 50;
/** Ours is among the most recently updated pull requests. */
const PAGES_MAX = 10;

/** Creates a client of the REST API of Gitea and Forgejo. */
export function createGitea(remote: string, connection: Connection): Forge {
  const { origin, owner, name } = forgePlace(remote);
  const api: ForgeApi = {
    connection,
    base: `${origin}/api/v1/repos/${owner}/${name}`,
    headers: {},
    authorization: (token) => `token ${token}`,
  };
  const find: Forge["find"] = async (request) => {
    for (let page = 1; page <= PAGES_MAX; page++) {
      const path = `/pulls?state=all&sort=recentupdate&limit=${PAGE}&page=${page}`;
      const listed = await callForge(api, { what: "looking for the pull request", method: "GET", path }, z.array(ApiRequest));
      const found = chosenRequest(listed, request);
      if (found !== null) return view(found);
      if (listed.length < PAGE) break;
    }
    return null;
  };
  return {
    find,
    ...pullRequests(api, { find, view }),
    async merge(id, { commit }) {
      // The API's own spelling of its keys.
      const body = { Do: "merge", head_commit_id: commit };
      await callForge(api, { what: "merging", method: "POST", path: `/pulls/${id}/merge`, body }, z.unknown());
    },
    ownRefs: () => [],
  };
}

function view(request: ApiRequest): RequestView {
  const { number, html_url: url, head, mergeable, draft } = request;
  const isMergeable = mergeable === true && draft !== true;
  return {
    id: String(number),
    url,
    state: stateOf(request),
    head: head.sha,
    mergeable: isMergeable ? "yes" : mergeable == null ? "unknown" : "no",
    why: isMergeable ? null : draft === true ? "it is a draft" : "it conflicts with the target branch, or a rule forbids it",
  };
}
