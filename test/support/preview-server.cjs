"use strict";
// A program inside a sandbox, for the preview tests: HTTP, events, a WebSocket that echoes, and a TCP port that echoes.
const { createHash, randomBytes } = require("node:crypto");
const http = require("node:http");
const net = require("node:net");

const [httpPort, tcpPort] = process.argv.slice(2).map(Number);
const hashOf = (data) => createHash("sha256").update(data).digest("hex");
const big = randomBytes(50 * 1024 * 1024);
const waiting = [];

const routes = {
  "/hello": (request, response) => response.end(JSON.stringify({ headers: request.headers })),
  "/download": (_request, response) => response.writeHead(200, { "X-Hash": hashOf(big), "Content-Length": big.length }).end(big),
  "/upload": (request, response) => {
    const hash = createHash("sha256");
    request.on("data", (chunk) => hash.update(chunk)).on("end", () => response.end(hash.digest("hex")));
  },
  "/events": (_request, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: first\n\n");
    waiting.push(response);
  },
  "/next": (_request, response) => {
    for (const each of waiting.splice(0)) each.end("data: second\n\n");
    response.end();
  },
};

const server = http.createServer((request, response) =>
  (routes[request.url] || ((_, absent) => absent.writeHead(404).end()))(request, response),
);
server.on("upgrade", (request, socket) => {
  const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket", `Sec-WebSocket-Accept: ${accept}`];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  socket.on("error", () => {});
  // Handles only short text frames, one per packet, which is all that the test sends.
  socket.on("data", (frame) => {
    const mask = frame.subarray(2, 6);
    const text = frame.subarray(6, 6 + (frame[1] & 127)).map((byte, index) => byte ^ mask[index % 4]);
    socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
  });
});
server.listen(httpPort, "127.0.0.1");
net.createServer({ allowHalfOpen: true }, (socket) => socket.on("error", () => {}).pipe(socket)).listen(tcpPort, "127.0.0.1");
