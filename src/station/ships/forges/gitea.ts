import { z } from "zod";
import { CaissonError } from "../../../contract/error.ts";
import type { Connection } from "../connection.ts";
import { ApiRequest, callForge, chosenRequest, type ForgeApi, forgePlace, stateOf } from "./api-forge.ts";
import type { Forge, RequestView } from "./forge.ts";

const PAGE = 50;
/** Ours is among those that were touched last. */
const PAGES_MAX = 10;

/** By the REST API of Gitea and Forgejo. */
export function createGitea(remote: string, connection: Connection): Forge {
  const { origin, owner, name } = forgePlace(remote);
  const api: ForgeApi = {
    connection,
    base: `${origin}/api/v1/repos/${owner}/${name}`,
    headers: {},
    authorization: (token) => `token ${token}`,
  };
  const look = async (id: string) =>
    view(await callForge(api, { what: "looking at the pull request", method: "GET", path: `/pulls/${id}` }, ApiRequest));
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
    look,
    async open(request) {
      const { title, body, branch, into } = request;
      const call = {
        what: "opening the pull request",
        method: "POST",
        path: "/pulls",
        body: { title, body, head: branch, base: into },
      } as const;
      try {
        return view(await callForge(api, call, ApiRequest));
      } catch (error) {
        // It may be there already: made by us before something interrupted us.
        const there = error instanceof CaissonError && error.code === "conflict" ? await find(request) : null;
        if (there === null) throw error;
        return there;
      }
    },
    async merge(id, { commit }) {
      // Names as the API has them.
      const body = { Do: "merge", head_commit_id: commit };
      await callForge(api, { what: "merging", method: "POST", path: `/pulls/${id}/merge`, body }, z.unknown());
    },
    async close(id) {
      await callForge(
        api,
        { what: "closing the pull request", method: "PATCH", path: `/pulls/${id}`, body: { state: "closed" } },
        ApiRequest,
      );
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
    why: isMergeable
      ? null
      : draft === true
        ? "it is a draft"
        : "it conflicts with the branch that it shall be merged into, or a rule forbids it",
  };
}
