/**
 * Replaces our proxy in the network figures with a forward proxy from Node's documentation, with connections kept
 * alive. Prints its port and serves until its input ends.
 */
import { Agent, createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";

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

proxy.listen(0, "127.0.0.1", () => process.stdout.write(`${(proxy.address() as AddressInfo).port}\n`));
process.stdin.resume().once("end", () => process.exit(0));
