import { once } from "node:events";
import type { Socket } from "node:net";

export const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/** Resolves when the socket, if any, has closed. */
export const closed = (socket: Socket | undefined) => (socket === undefined || socket.closed ? Promise.resolve() : once(socket, "close"));
