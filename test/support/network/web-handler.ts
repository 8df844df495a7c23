import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

const BLOCK = Buffer.alloc(64 * 1024, "caisson.");
/** The bytes of a request's body that are sent back and recorded. */
const BODY_SHOWN_BYTES_MAX = 64 * 1024;

export async function readBody(request: IncomingMessage): Promise<{ text: string; bytes: number }> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    if (bytes < BODY_SHOWN_BYTES_MAX) pieces.push(piece);
    bytes += piece.length;
  }
  return { text: Buffer.concat(pieces).toString("latin1").slice(0, BODY_SHOWN_BYTES_MAX), bytes };
}

/**
 * Answers by path: `/redirect?to=`, `/status?code=`, `/slow?ms=`, `/hang`, `/stream?pieces=&ms=`, `/big?bytes=`,
 * `/die?bytes=`, `/abort` (plain only), `/raw?bytes=` (the whole response in base64), `/text?say=`, `/set?name=&value=`
 * (a header). Echoes any other request as JSON.
 */
export async function answerWeb(request: IncomingMessage, response: ServerResponse, body: { text: string; bytes: number }): Promise<void> {
  const url = new URL(request.url ?? "/", "http://x");
  const number = (name: string, otherwise = 0) => Number(url.searchParams.get(name) ?? otherwise);
  const text = (name: string) => url.searchParams.get(name) ?? "";
  switch (url.pathname) {
    case "/redirect":
      response.writeHead(number("status", 302), { location: text("to") }).end("elsewhere\n");
      return;
    case "/status":
      response.writeHead(number("code", 200)).end();
      return;
    case "/slow":
      await new Promise((resolve) => setTimeout(resolve, number("ms", 1000)));
      response.end("slow\n");
      return;
    case "/hang":
      return;
    case "/stream":
      await stream(response, number("pieces", 5), number("ms", 50));
      return;
    case "/big":
      response.writeHead(200, { "content-length": number("bytes"), "content-type": "application/octet-stream" });
      await send(response, number("bytes"));
      response.end();
      return;
    case "/die":
      response.writeHead(200, { "content-length": number("bytes") * 10 });
      await send(response, number("bytes"));
      // Without the message with which TLS ends a connection.
      response.socket?.destroy();
      return;
    case "/abort":
      // A client that reads to the end must not accept this as a complete response.
      response.socket?.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf", () => response.socket?.resetAndDestroy());
      return;
    case "/raw":
      response.socket?.end(Buffer.from(text("bytes"), "base64"));
      return;
    case "/text":
      response.end(text("say"));
      return;
    case "/set":
      response.writeHead(200, { [text("name")]: text("value") }).end("set\n");
      return;
    default:
      echo(request, response, body);
  }
}

function echo(request: IncomingMessage, response: ServerResponse, body: { text: string; bytes: number }): void {
  const payload = { method: request.method, path: request.url, headers: request.headers, body: body.text, bodyBytes: body.bytes };
  response.writeHead(200, { "content-type": "application/json", "x-served-by": "rig" }).end(`${JSON.stringify(payload)}\n`);
}

async function stream(response: ServerResponse, pieces: number, everyMs: number): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let index = 0; index < pieces; index++) {
    response.write(`data: ${index}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  response.end();
}

async function send(response: ServerResponse, bytes: number): Promise<void> {
  for (let left = bytes; left > 0 && !response.destroyed; left -= BLOCK.length) {
    if (response.write(left < BLOCK.length ? BLOCK.subarray(0, left) : BLOCK)) continue;
    await new Promise<void>((resolve) => {
      const go = () => {
        response.off("drain", go);
        response.off("close", go);
        resolve();
      };
      response.once("drain", go);
      response.once("close", go);
    });
  }
}

/** Serves a WebSocket that echoes short text messages. */
export function answerWebSocket(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
  let pending = Buffer.alloc(0);
  socket.on("error", () => {});
  socket.on("data", (piece: Buffer) => {
    pending = Buffer.concat([pending, piece]);
    for (;;) {
      const length = (pending[1] ?? 0) & 127;
      if (pending.length < 6 + length) return;
      const mask = pending.subarray(2, 6);
      const payload = Buffer.from(pending.subarray(6, 6 + length)).map((byte, index) => byte ^ (mask[index % 4] as number));
      const opcode = (pending[0] as number) & 15;
      socket.write(Buffer.concat([Buffer.from([0x80 | opcode, length]), payload]));
      pending = pending.subarray(6 + length);
      if (opcode === 8) socket.end();
    }
  });
}
