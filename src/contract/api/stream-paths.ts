/**
 * The path of every WebSocket of the API, by name. Separate from the messages (`streams.ts`), so that a browser client
 * loads no schemas.
 */
export const streamPaths = {
  "events.stream": "/v1/stream",
  "sandboxes.createHeld": "/v1/sandboxes/hold",
  "sandboxes.hold": "/v1/sandboxes/{sandbox}/hold",
  "processes.stream": "/v1/sandboxes/{sandbox}/process",
  "ports.connect": "/v1/sandboxes/{sandbox}/ports/{port}/connection",
} as const;
export type StreamName = keyof typeof streamPaths;

/**
 * The subprotocol of all WebSockets. A client that cannot set headers, as in a browser, also offers
 * `caisson.bearer.TOKEN`; the server only ever accepts this one.
 */
export const STREAM_PROTOCOL = "caisson.v1";
export const BEARER_PROTOCOL_PREFIX = "caisson.bearer.";

/**
 * Close codes. A socket that fails sends the problem as its last message, and is closed with 4000 plus the problem's
 * HTTP status, such as 4404 for `not_found`.
 */
export const closeCodes = {
  /** The exchange is complete. */
  done: 1000,
  /** The station is ending; reconnect. */
  goingAway: 1001,
  /** The client considers the connection dead, and reconnects. */
  abandoned: 4000,
  problemBase: 4000,
} as const;

/** A client that never has more unacknowledged input than this in flight is never blocked. */
export const INPUT_WINDOW_BYTES = 256 * 1024;
/** The maximum size of a message or frame; both sides split larger data. */
export const FRAME_BYTES_MAX = 1024 * 1024;
