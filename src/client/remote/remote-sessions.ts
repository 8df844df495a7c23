import type { DiffPiece } from "../../contract/session/session-verbs.ts";
import type { EventData } from "../../verbs/routes.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import type { Client } from "../connect.ts";
import { derivedVerbs } from "./derived-verbs.ts";

export function remoteSessions({ sessions }: Pick<Client, "sessions">): SessionVerbs {
  return {
    ...derivedVerbs("sessions", sessions),
    async *patch(name, { signal, paths, ...options } = {}) {
      const query = { ...options, ...(paths && { paths: [...paths] }) };
      for await (const piece of sessions.pieces(name, query, { ...(signal && { signal }) })) yield pieceOf(piece);
    },
  };
}

const encoder = new TextEncoder();

function pieceOf(piece: EventData<"sessions.patch">): DiffPiece {
  if (piece.kind !== "patch") return piece;
  return { kind: "patch", bytes: piece.encoding === "utf8" ? encoder.encode(piece.text) : Buffer.from(piece.text, "base64") };
}
