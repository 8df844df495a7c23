import type { DiffPiece } from "../../contract/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `sessions.${string}`>;

export const sessionHandlers: Handlers<Name> = {
  "sessions.list": async ({ station }) => ({ json: { sessions: await station.sessions.list() } }),
  "sessions.get": async ({ station, params }) => ({ json: await station.sessions.get(params.session) }),
  "sessions.diff": async ({ station, params, query, signal }) => ({
    json: await station.sessions.diff(params.session, { signal, ...defined(query) }),
  }),
  async "sessions.patch"({ station, params, query, signal }) {
    // One that does not exist is no stream.
    await station.sessions.get(params.session);
    return { bytes: patchOf(station.sessions.patch(params.session, { signal, ...defined(query) })) };
  },
  "sessions.apply": async ({ station, params, body }) => ({ json: await station.sessions.apply(params.session, body) }),
  "sessions.branch": async ({ station, params, body }) => ({ json: await station.sessions.branch(params.session, body) }),
  async "sessions.unlock"({ station, params, body }) {
    await station.sessions.unlock(params.session, body);
    return nothing;
  },
  async "sessions.discard"({ station, params, query }) {
    await station.sessions.discard(params.session, query);
    return nothing;
  },
};

/** What was left out is told by the diff; a patch is what `git apply` takes. */
async function* patchOf(pieces: AsyncIterable<DiffPiece>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) if (piece.kind === "patch") yield piece.bytes;
}
