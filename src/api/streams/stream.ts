import type { StreamName } from "../../contract/api/stream-paths.ts";
import type { AuditSubject } from "../../contract/audit/audit-text.ts";
import type { Station } from "../../verbs/station.ts";
import type { Caller } from "../call.ts";
import type { ServerSocket } from "./server-socket.ts";

/** A WebSocket whose client may open it. */
export interface Stream {
  readonly socket: ServerSocket;
  readonly caller: Caller;
  /** The station as this caller sees it. */
  readonly station: Station;
  /** The name of the caller's view of the station. Callers with the same name see the same. */
  readonly view: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  /**
   * Records an action before it has any effect. The path parameters are recorded anyway. If this throws, the action
   * must not happen.
   */
  readonly audit: (action: string, subject?: AuditSubject) => Promise<void>;
  /** Aborted when the client disconnects or loses the right to this stream, and when the station ends. */
  readonly signal: AbortSignal;
  /** Whether the station is ending. */
  readonly isEnding: () => boolean;
}

/** Resolves when everything was sent. Errors go to the client. */
export type ServeStream = (stream: Stream) => Promise<void>;
export type ServeStreams = Readonly<Record<StreamName, ServeStream>>;
