import type { EventData } from "../../contract/api/routes.ts";
import type { DiffPiece } from "../../contract/session-verbs.ts";
import type { SessionVerbs } from "../../station/sessions/verbs.ts";
import type { Client } from "../connect.ts";
import { bytesOf } from "./byte-streams.ts";

export function remoteSessions({ sessions }: Pick<Client, "sessions">): SessionVerbs {
  return {
    get: (name) => sessions.get(name),
    list: () => sessions.list(),
    diff: (name, { signal, paths, includeIgnored, at } = {}) =>
      sessions.diff(
        name,
        { ...(paths && { paths: [...paths] }), ...(includeIgnored !== undefined && { includeIgnored }), ...(at !== undefined && { at }) },
        { ...(signal && { signal }) },
      ),
    unapplied: (name) => sessions.unapplied(name),
    async *patch(name, { signal, paths, ...options } = {}) {
      const query = { ...options, ...(paths && { paths: [...paths] }) };
      for await (const piece of sessions.pieces(name, query, { ...(signal && { signal }) })) yield pieceOf(piece);
    },
    async *changes(name, { signal, paths, ...options } = {}) {
      const query = { ...options, ...(paths && { paths: [...paths] }) };
      yield* bytesOf(await sessions.changes(name, query, { ...(signal && { signal }) }), { what: "reading changes", signal });
    },
    note: (name, note) => sessions.note(name, note),
    apply: (name, options) => sessions.apply(name, options),
    applied: (name, options) => sessions.applied(name, options),
    undo: (run, options) => sessions.undo(run, options),
    points: (name) => sessions.points(name),
    files: (name, options) => sessions.files(name, options),
    async *readFile(name, options) {
      yield* bytesOf(await sessions.readFile(name, options), { what: "reading a file", signal: undefined });
    },
    fork: (name, options) => sessions.fork(name, options),
    branch: (name, options) => sessions.branch(name, options),
    discard: async (name, options) => (await sessions.discard(name, options)).session,
    unlock: async (name, options) => (await sessions.unlock(name, options)).session,
    cleanup: (options) => sessions.cleanup(options),
  };
}

const encoder = new TextEncoder();

function pieceOf(piece: EventData<"sessions.patch">): DiffPiece {
  if (piece.kind !== "patch") return piece;
  return { kind: "patch", bytes: piece.encoding === "utf8" ? encoder.encode(piece.text) : Buffer.from(piece.text, "base64") };
}
