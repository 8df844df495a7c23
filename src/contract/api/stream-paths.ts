/**
 * Every WebSocket of the API by its name, with its path. Apart from its messages (`streams.ts`), so that a client in a
 * browser loads no schemas.
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
 * The subprotocol of all of them. A client that can set no header, as in a browser, names `caisson.bearer.TOKEN`
 * beside it; the server answers with this one alone.
 */
export const STREAM_PROTOCOL = "caisson.v1";
export const BEARER_PROTOCOL_PREFIX = "caisson.bearer.";

/**
 * How a socket is closed. One that ends with a problem says it in a last message, and is closed with 4000 and the
 * problem's HTTP status, such as 4404 for `not_found`.
 */
export const closeCodes = {
  /** All was said. */
  done: 1000,
  /** The station ends: come back. */
  goingAway: 1001,
  /** The client takes the connection for dead, and comes back over another. */
  abandoned: 4000,
  problemBase: 4000,
} as const;

/** A client that has sent no more of its input than this beyond what was taken is never made to wait. */
export const INPUT_WINDOW_BYTES = 256 * 1024;
/** A message or a frame is not longer; both sides split what is. */
export const FRAME_BYTES_MAX = 1024 * 1024;
