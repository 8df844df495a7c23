import type { StreamName } from "../../contract/api/stream-paths.ts";
import type { AuditSubject } from "../../contract/audit-text.ts";
import type { Station } from "../../station/station.ts";
import type { Caller } from "../call.ts";
import type { ServerSocket } from "./server-socket.ts";

/** A WebSocket whose client may open it. */
export interface Stream {
  readonly socket: ServerSocket;
  readonly caller: Caller;
  /** As this caller may see it. */
  readonly station: Station;
  /** Names a view of the station: callers with the same one see the same. */
  readonly view: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  /**
   * Puts down what is asked, besides the parts of the path, before it has any effect. Throws what keeps it from that:
   * then it must not have one.
   */
  readonly audit: (action: string, subject?: AuditSubject) => Promise<void>;
  /** Aborted when the client has gone or may do this no longer, and when the station ends. */
  readonly signal: AbortSignal;
  /** Whether that is because the station ends. */
  readonly isEnding: () => boolean;
}

/** Resolves when all was said; what it throws, the client is told. */
export type ServeStream = (stream: Stream) => Promise<void>;
export type ServeStreams = Readonly<Record<StreamName, ServeStream>>;
