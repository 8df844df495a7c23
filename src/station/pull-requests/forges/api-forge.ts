import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { ignoring } from "../../../lib/failures.ts";
import { ask, type Connection, type ForgeRequest } from "../connection.ts";
import type { Forge, NewRequest, RequestView } from "./forge.ts";

const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** A repository on a forge: `https://HOST[/PREFIX]/OWNER/NAME`. */
export interface ForgePlace {
  /** The scheme, the host and any path before the owner. */
  origin: string;
  owner: string;
  name: string;
}

/** Parses the URL of a forge repository. Throws `invalid` if it is not one. */
export function forgePlace(remote: string): ForgePlace {
  const url = new URL(remote);
  const parts = url.pathname
    .replace(/\.git\/?$/, "")
    .split("/")
    .filter(Boolean);
  const [owner, name] = parts.slice(-2);
  const isPlain = (part: string | undefined): part is string => part !== undefined && /^[\w.-]{1,100}$/.test(part);
  if (parts.length < 2 || !isPlain(owner) || !isPlain(name))
    throw new CaissonError("invalid", `${remote} is not a repository on a forge`, { hint: "Use the form https://HOST/OWNER/NAME." });
  const prefix = parts
    .slice(0, -2)
    .map((part) => `/${part}`)
    .join("");
  return { origin: `${url.origin}${prefix}`, owner, name };
}

export interface ForgeApi {
  connection: Connection;
  base: string;
  headers: Readonly<Record<string, string>>;
  authorization: ForgeRequest["authorization"];
}

/**
 * Calls a forge's API and parses the JSON answer with `schema`. Throws as `ask`, and `protocol` if the answer does not
 * match.
 */
export async function callForge<Schema extends z.ZodType>(
  api: ForgeApi,
  call: { what: string; method: ForgeRequest["method"]; path: string; body?: object },
  schema: Schema,
): Promise<z.output<Schema>> {
  const { connection, base, authorization } = api;
  const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
  const answer = await ask(
    {
      what: call.what,
      method: call.method,
      url: `${base}${call.path}`,
      headers: { accept: "application/json", ...api.headers, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body }),
      authorization,
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
    },
    connection,
  );
  const parsed = schema.safeParse(jsonOf(answer.body));
  if (parsed.success) return parsed.data;
  throw new CaissonError("protocol", `${call.what} failed: the answer does not match the forge's API`, {
    details: { at: parsed.error.issues[0]?.path.join(".") ?? "" },
  });
}

function jsonOf(body: Buffer): unknown {
  if (body.length === 0) return null;
  return ignoring("the schema rejects it", () => JSON.parse(body.toString("utf8")));
}

/** The fields of a pull request that GitHub and Gitea share. */
export const ApiRequest = z.object({
  number: z.int().positive(),
  html_url: z.url({ protocol: /^https?$/ }).max(4096),
  state: z.string(),
  merged: z.boolean().nullish(),
  merged_at: z.string().nullish(),
  mergeable: z.boolean().nullish(),
  mergeable_state: z.string().nullish(),
  draft: z.boolean().nullish(),
  head: z.object({ ref: z.string(), sha: z.string() }),
  base: z.object({ ref: z.string() }),
});
export type ApiRequest = z.infer<typeof ApiRequest>;

/** The operations on pull requests that are the same for GitHub and Gitea. */
export function pullRequests(
  api: ForgeApi,
  { find, view }: Pick<Forge, "find"> & { view: (request: ApiRequest) => RequestView },
): Pick<Forge, "look" | "open" | "close"> {
  return {
    look: async (id) => view(await callForge(api, { what: "reading the pull request", method: "GET", path: `/pulls/${id}` }, ApiRequest)),
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
        // We may have opened it before an interruption.
        const there = error instanceof CaissonError && error.code === "conflict" ? await find(request) : null;
        if (there === null) throw error;
        return there;
      }
    },
    async close(id) {
      const call = { what: "closing the pull request", method: "PATCH", path: `/pulls/${id}`, body: { state: "closed" } } as const;
      await callForge(api, call, ApiRequest);
    },
  };
}

/** Returns the branch's pull request with our commit, preferably an open one, or else another open one. */
export function chosenRequest(
  found: readonly ApiRequest[],
  { branch, into, commit }: Pick<NewRequest, "branch" | "into" | "commit">,
): ApiRequest | null {
  const ofBranch = found.filter(({ head, base }) => head.ref === branch && base.ref === into);
  const worth = ({ head, state }: ApiRequest) => (head.sha === commit ? 2 : 0) + (state === "open" ? 1 : 0);
  // A closed one with a different head is an older pull request, not ours.
  const [best = null] = ofBranch
    .filter((each) => worth(each) > 0)
    .sort((left, right) => worth(right) - worth(left) || right.number - left.number);
  return best;
}

export function stateOf({ state, merged, merged_at }: ApiRequest): RequestView["state"] {
  if (merged === true || (merged_at != null && state !== "open")) return "merged";
  return state === "open" ? "open" : "closed";
}
