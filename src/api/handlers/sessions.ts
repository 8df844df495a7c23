import type { DiffPiece } from "../../contract/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { Station } from "../../station/station.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `sessions.${string}`>;

export function sessionHandlers({ sessions }: Pick<Station, "sessions">): Handlers<Name> {
  return {
    "sessions.list": async () => ({ json: { sessions: await sessions.list() } }),
    "sessions.get": async ({ params }) => ({ json: await sessions.get(params.session) }),
    "sessions.diff": async ({ params, query, signal }) => ({ json: await sessions.diff(params.session, { signal, ...defined(query) }) }),
    async "sessions.patch"({ params, query, signal }) {
      // One that does not exist is no stream.
      await sessions.get(params.session);
      return { bytes: patchOf(sessions.patch(params.session, { signal, ...defined(query) })) };
    },
    "sessions.apply": async ({ params, body }) => ({ json: await sessions.apply(params.session, body) }),
    "sessions.branch": async ({ params, body }) => ({ json: await sessions.branch(params.session, body) }),
    async "sessions.unlock"({ params, body }) {
      await sessions.unlock(params.session, body);
      return nothing;
    },
    async "sessions.discard"({ params, query }) {
      await sessions.discard(params.session, query);
      return nothing;
    },
  };
}

/** What was left out is told by the diff; a patch is what `git apply` takes. */
async function* patchOf(pieces: AsyncIterable<DiffPiece>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) if (piece.kind === "patch") yield piece.bytes;
}
