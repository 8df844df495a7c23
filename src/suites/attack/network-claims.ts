import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { type AttackContext, finishAttempt, probeMissing } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";

interface Reach {
  /** `ok` or an errno, by `kind address port`. */
  results: Record<string, string>;
  /** The number of connections that arrived at a listener on the host. */
  arrived: number;
}

/** Every result that means nothing was reached. A refusal on loopback comes from the sandbox's own, empty loopback. */
const unreachable = new Set([
  "ENETUNREACH",
  "EHOSTUNREACH",
  "EADDRNOTAVAIL",
  "EPERM",
  "EACCES",
  "EAFNOSUPPORT",
  "EPROTONOSUPPORT",
  "ENETDOWN",
  "ECONNREFUSED",
]);

/** Attacks on the network `none`, which must not let a single packet out. */
export const networkClaims: Claim[] = [
  defineClaim<Reach>({
    id: "N01",
    title: "Metadata, private and host addresses are unreachable",
    group: "network",
    tried: "Connected from inside to a listener on the host's loopback, to metadata and private addresses, and to the host's own.",
    async observe(context) {
      const own = Object.values(networkInterfaces())
        .flatMap((each) => each ?? [])
        .filter((each) => !each.internal && !each.address.startsWith("fe80"))
        .map((each) => each.address);
      const far = ["169.254.169.254", "10.0.0.1", "172.16.0.1", "172.17.0.1", "192.168.1.1", "fd00:ec2::254", ...own];
      return reach(context, ["127.0.0.1", "::1"], far);
    },
    judge: judgeReach,
    describe: describeReach,
  }),
  defineClaim<{ interfaces: string[]; results: Record<string, string>; resolved: string }>({
    id: "N03",
    title: "No name is resolved, so no lookup carries data out",
    group: "network",
    tried: "Listed the network interfaces inside; if there was only loopback, sent datagrams to name servers and looked up a name.",
    async observe(context) {
      const sandbox = await context.sandbox();
      const interfaces = await interfacesOf(context);
      if (interfaces.some((name) => name !== "lo")) return { interfaces, results: {}, resolved: "" };
      const probed = await context.probe(sandbox, [
        "network",
        "udp",
        "8.8.8.8",
        "53",
        "udp",
        "1.1.1.1",
        "53",
        "udp",
        "2001:4860:4860::8888",
        "53",
      ]);
      if (probed === null) return unverifiable(probeMissing);
      const { stdout } = await context.shell(sandbox, "getent hosts data.example.com 2>/dev/null; true", [], { timeoutMs: 10_000 });
      return { interfaces, results: toResults(probed), resolved: stdout.trim() };
    },
    judge: ({ interfaces, results, resolved }) => [
      ...interfaces.filter((name) => name !== "lo").map((name) => `an interface ${name}`),
      ...reachableTargets(results),
      ...(resolved === "" ? [] : [`a name was resolved: ${resolved}`]),
    ],
  }),
  defineClaim<{ interfaces: string[]; routes: string[]; results: Record<string, string> }>({
    id: "N04",
    title: "TCP, UDP, ICMP and IPv6 have no way out",
    group: "network",
    tried:
      "Listed interfaces and routes inside; if there was only loopback, tried TCP, UDP and ICMP over IPv4 and IPv6 to public addresses.",
    async observe(context) {
      const interfaces = await interfacesOf(context);
      const routing = await context.shell(
        await context.sandbox(),
        "tail -n +2 /proc/net/route; cat /proc/net/ipv6_route 2>/dev/null | grep -v ' lo$'; true",
      );
      const routes = routing.stdout.split("\n").filter((line) => line.trim() !== "");
      if (interfaces.some((name) => name !== "lo")) return { interfaces, routes, results: {} };
      const targets = [
        "tcp 1.1.1.1 443",
        "udp 1.1.1.1 443",
        "icmp 1.1.1.1 0",
        "tcp 2606:4700:4700::1111 443",
        "udp 2606:4700:4700::1111 443",
        "icmp 2606:4700:4700::1111 0",
      ];
      const probed = await context.probe(await context.sandbox(), ["network", ...targets.flatMap((each) => each.split(" "))]);
      if (probed === null) return unverifiable(probeMissing);
      return { interfaces, routes, results: toResults(probed) };
    },
    judge: ({ interfaces, routes, results }) => [
      ...interfaces.filter((name) => name !== "lo").map((name) => `an interface ${name}`),
      ...routes.map((line) => `a route: ${line.slice(0, 80)}`),
      ...reachableTargets(results),
    ],
  }),
  defineClaim<{ port: string; result: string }>({
    id: "N13",
    title: "One sandbox cannot reach another's ports",
    group: "network",
    tried: "Listened on a port in one sandbox and connected to it from another.",
    observe: observeNeighbourPort,
    judge: ({ port, result }) => (result !== "ok" && port !== "" ? [] : [`port ${port} of the other sandbox answered ${result}`]),
    describe: ({ result }) => `connecting returned ${result}`,
  }),
];

function toResults(lines: string[][]): Record<string, string> {
  return Object.fromEntries(lines.map((line) => [line.slice(0, -1).join(" "), line.at(-1) ?? ""]));
}

function reachableTargets(results: Record<string, string>): string[] {
  return Object.entries(results)
    .filter(([target, result]) => target !== "end" && !unreachable.has(result))
    .map(([target, result]) => `${target}: ${result}`);
}

function judgeReach({ results, arrived }: Reach): string[] {
  const ended = results.end === "ok" ? [] : ["the probe stopped early"];
  return [...ended, ...reachableTargets(results), ...(arrived === 0 ? [] : [`${arrived} connections arrived at the host`])];
}

function describeReach({ results }: Reach): string {
  return Object.entries(results)
    .filter(([target]) => target !== "end")
    .map(([target, result]) => `${target}: ${result}`)
    .join(", ");
}

async function interfacesOf(context: AttackContext): Promise<string[]> {
  const { stdout } = await context.shell(await context.sandbox(), "tail -n +3 /proc/net/dev");
  return stdout
    .split("\n")
    .map((line) => line.split(":")[0]?.trim() ?? "")
    .filter((name) => name !== "");
}

/** Without a wall, only the host's loopback is tried, because this suite must send nothing off the machine. */
async function reach(context: AttackContext, loopback: string[], far: string[]): Promise<Reach | NotTried> {
  let arrived = 0;
  const server = createServer((socket) => {
    arrived += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? String(address.port) : "9";
  try {
    const targets = [
      ...loopback.map((each) => ["tcp", each, port]),
      ...(context.capabilities.isolation > 0 ? far : []).map((each) => ["tcp", each, "80"]),
    ];
    const lines = await context.probe(await context.sandbox(), ["network", ...targets.flat()]);
    if (lines === null) return unverifiable(probeMissing);
    return { results: toResults(lines), arrived };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

async function observeNeighbourPort(context: AttackContext): Promise<{ port: string; result: string } | NotTried> {
  const [one, other] = [await context.sandbox(), await context.create()];
  const script =
    "if command -v python3 >/dev/null; then exec python3 -c 'import socket,time; s=socket.socket(); s.bind((\"0.0.0.0\",0)); s.listen(); print(s.getsockname()[1],flush=True); time.sleep(20)'; " +
    "elif command -v node >/dev/null; then exec node -e 'require(\"net\").createServer().listen(0,function(){console.log(this.address().port)})'; " +
    "elif command -v perl >/dev/null; then exec perl -MIO::Socket::INET -e '$|=1; $s=IO::Socket::INET->new(Listen=>8,LocalPort=>0); print $s->sockport,\"\\n\"; sleep 20'; else exit 3; fi";
  const listening = await context.startShell(one, script, [], { timeoutMs: 20_000 });
  const first = await context.within("the listener", listening.output[Symbol.asyncIterator]().next());
  if (first.done) {
    const { ended } = await finishAttempt(listening);
    return unverifiable(`no program inside can listen on a port (${JSON.stringify(ended)})`);
  }
  const port = Buffer.from(first.value.data).toString().trim();
  const lines = await context.probe(other, ["network", "tcp", "127.0.0.1", port]);
  await listening.kill();
  if (lines === null) return unverifiable(probeMissing);
  return { port, result: lines[0]?.at(-1) ?? "nothing" };
}
