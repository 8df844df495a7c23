import type { DiffPiece } from "../../contract/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import { begun } from "../begun.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `sessions.${string}`>;

export const sessionHandlers: Handlers<Name> = {
  "sessions.list": async ({ station, query }) => ({ json: await station.sessions.list(query) }),
  "sessions.get": async ({ station, params }) => ({ json: await station.sessions.get(params.session) }),
  "sessions.diff": async ({ station, params, query, signal }) => ({
    json: await station.sessions.diff(params.session, { signal, ...defined(query) }),
  }),
  async "sessions.patch"({ station, params, query, wants, signal }) {
    // With the first piece: one that does not exist is no stream.
    const pieces = await begun(station.sessions.patch(params.session, { signal, ...defined(query) }));
    return wants === "events" ? { events: piecesOf(pieces) } : { bytes: patchOf(pieces) };
  },
  "sessions.changes": async ({ station, params, query, signal }) => ({
    bytes: await begun(station.sessions.changes(params.session, { signal, ...defined(query) })),
  }),
  async "sessions.note"({ station, params, body }) {
    await station.sessions.note(params.session, body);
    return nothing;
  },
  "sessions.apply": async ({ station, params, body }) => ({ json: await station.sessions.apply(params.session, body) }),
  "sessions.applied": async ({ station, params, query }) => ({ json: await station.sessions.applied(params.session, defined(query)) }),
  "sessions.branch": async ({ station, params, body }) => ({ json: await station.sessions.branch(params.session, body) }),
  "sessions.unlock": async ({ station, params, body }) => ({ json: { session: await station.sessions.unlock(params.session, body) } }),
  "sessions.discard": async ({ station, params, query }) => ({ json: { session: await station.sessions.discard(params.session, query) } }),
  "sessions.unapplied": async ({ station, params }) => ({ json: await station.sessions.unapplied(params.session) }),
  "sessions.undo": async ({ station, params, body }) => ({ json: await station.sessions.undo(params.run, body) }),
  "sessions.points": async ({ station, params }) => ({ json: { points: await station.sessions.points(params.session) } }),
  "sessions.files": async ({ station, params, query }) => ({ json: await station.sessions.files(params.session, query) }),
  "sessions.readFile": async ({ station, params, query }) => ({
    bytes: await begun(station.sessions.readFile(params.session, query)),
  }),
  "sessions.fork": async ({ station, params, body }) => ({ json: await station.sessions.fork(params.session, body) }),
  "sessions.cleanup": async ({ station, body }) => ({ json: await station.sessions.cleanup(body) }),
};

/** What was left out is told by the diff; a patch is what `git apply` takes. */
async function* patchOf(pieces: AsyncIterable<DiffPiece>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) if (piece.kind === "patch") yield piece.bytes;
}

async function* piecesOf(pieces: AsyncIterable<DiffPiece>) {
  for await (const piece of pieces) {
    yield { type: piece.kind, data: piece.kind === "patch" ? { kind: piece.kind, ...textOrBase64(piece.bytes) } : piece };
  }
}
