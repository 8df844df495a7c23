import { connect } from "node:net";
import { type ClientOptions, WebSocket } from "ws";
import type { AnySocket, OpenSocket } from "./stream-socket.ts";

/**
 * Opens WebSockets with Node, with the token in a header as in other requests. With `socketPath`, connects to a socket
 * of this machine, whatever host the URL names. `ca`: the certificates that the station's own must chain to.
 */
export function nodeSockets({ socketPath, ca }: { socketPath?: string; ca?: string } = {}): OpenSocket {
  return (url, { protocol, token }) => {
    const options: ClientOptions = {
      perMessageDeflate: false,
      ...(ca !== undefined && { ca }),
      headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      ...(socketPath !== undefined && { createConnection: () => connect({ path: socketPath }) }),
    };
    const { pathname, search } = new URL(url);
    return new WebSocket(socketPath === undefined ? url : `ws://station${pathname}${search}`, protocol, options) as unknown as AnySocket;
  };
}
