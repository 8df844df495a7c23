/**
 * What stands in place of ours in the network's figures, in a process of its own that prints its port and serves until its input ends. The first argument says which:
 * `proxy`, a forward proxy as Node's documentation shows it, with connections kept alive; `server`, a program's own web server, on the port given.
 */
import { Agent, createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";

const [, , what = "", port = "0"] = process.argv;
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

const proxy = createServer((incoming, outgoing) => {
  const { hostname, port, pathname, search } = new URL(incoming.url ?? "");
  const { method, headers } = incoming;
  const upstream = request({ agent, hostname, port, path: pathname + search, method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  upstream.on("error", () => outgoing.destroy());
  incoming.pipe(upstream);
});
proxy.on("connect", (incoming, socket, head) => {
  const [host, port] = (incoming.url ?? "").split(":");
  const upstream = connect(Number(port), host, () => {
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    upstream.write(head);
    upstream.pipe(socket).pipe(upstream);
  });
  upstream.on("error", () => socket.destroy());
  socket.on("error", () => upstream.destroy());
});

const server = createServer((_, outgoing) => {
  outgoing.setHeader("content-type", "text/plain");
  outgoing.setHeader("content-length", 13);
  outgoing.end("hello, world\n");
});

const chosen = what === "proxy" ? proxy : server;
chosen.listen(Number(port), "127.0.0.1", () => process.stdout.write(`${(chosen.address() as AddressInfo).port}\n`));
process.stdin.resume().once("end", () => process.exit(0));
