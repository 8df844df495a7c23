import { CaissonError } from "../../contract/error/error.ts";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import { PACK_BYTES_MAX } from "../../workspace/git/packs.ts";
import { type GitRemote, missingUpdate } from "../../workspace/git/remote.ts";
import { readAdvertisedRefs, type Service } from "../../workspace/git/wire/advertised-refs.ts";
import { fetchRequest, readFetchedPack } from "../../workspace/git/wire/fetch-request.ts";
import { pushRequest, readPushReport } from "../../workspace/git/wire/push-request.ts";
import { ask, type Connection, gitPassword, withoutToken } from "./connection.ts";

const REFS_BYTES_MAX = 32 * 1024 * 1024;
const REPORT_BYTES_MAX = 1024 * 1024;
const REFS_TIMEOUT_MS = 60_000;
const PACK_TIMEOUT_MS = 10 * 60_000;

/**
 * A repository over HTTP. The station speaks git's protocol itself, so no git process ever sees the URL or the token.
 */
export function createHttpRemote(url: string, connection: Connection): GitRemote {
  const base = withoutTrailingSlashes(url);
  const authorization = (token: string) => `Basic ${gitPassword(token)}`;
  const readRefs = async (service: Service) => {
    const { body, contentType } = await ask(
      {
        what: "reading the remote's branches",
        method: "GET",
        url: `${base}/info/refs?service=${service}`,
        authorization,
        timeoutMs: REFS_TIMEOUT_MS,
        answerBytesMax: REFS_BYTES_MAX,
      },
      connection,
    );
    if (!contentType.startsWith(`application/x-${service}-advertisement`))
      throw new CaissonError("protocol", "the remote's URL does not serve a git repository", { hint: "The URL may need .git at its end." });
    return readAdvertisedRefs(body, service);
  };
  const post = async (service: Service, { what, body, answerBytesMax }: { what: string; body: Buffer; answerBytesMax: number }) =>
    await ask(
      {
        what,
        method: "POST",
        url: `${base}/${service}`,
        headers: { "content-type": `application/x-${service}-request`, accept: `application/x-${service}-result` },
        body,
        authorization,
        timeoutMs: PACK_TIMEOUT_MS,
        answerBytesMax,
      },
      connection,
    );
  return {
    refs: () => readRefs("git-upload-pack"),
    async push(updates, pack) {
      const { capabilities, refs } = await readRefs("git-receive-pack");
      const moved = updates.find(({ ref, from }) => (refs.get(ref) ?? null) !== from);
      if (moved !== undefined) throw new CaissonError("conflict", `${moved.ref} has moved`, { details: { ref: moved.ref } });
      const body = pushRequest(updates, { pack, capabilities });
      const answer = await post("git-receive-pack", { what: "pushing", body, answerBytesMax: REPORT_BYTES_MAX });
      const token = await connection.token({ method: "POST", url: `${base}/git-receive-pack` });
      const outcome = readPushReport(answer.body, updates, { clean: (text) => withoutToken(text, token) });
      const missing = missingUpdate(updates, (await readRefs("git-receive-pack")).refs);
      if (missing !== null)
        throw new CaissonError("unavailable", `the remote accepted the push, but did not change ${missing.ref}`, {
          hint: "Check the remote by hand: its answers are not reliable.",
        });
      return outcome;
    },
    async fetch(request) {
      const body = fetchRequest(request);
      return readFetchedPack((await post("git-upload-pack", { what: "fetching", body, answerBytesMax: PACK_BYTES_MAX })).body);
    },
  };
}
