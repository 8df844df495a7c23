import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { NetworkPolicy } from "../../contract/network/network.ts";
import type { AttackContext } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";

interface EgressAnswers {
  /** The proxy's status by target, or what went wrong. */
  answers: Record<string, string>;
  /** The number of connections that arrived at a listener on the host. */
  arrived: number;
}

const none = { rules: [], registries: [], transparent: false };
const open: NetworkPolicy = { mode: "open", ...none };
const nothing: NetworkPolicy = { mode: "allow", ...none };

/**
 * Attacks on a sandbox with a network. Every request goes through the proxy inside, which is the only way out; nothing
 * leaves the machine.
 */
export const egressClaims: Claim[] = [
  defineClaim<EgressAnswers>({
    id: "N02",
    title: "An open network cannot reach the host itself, or private and metadata addresses",
    group: "network",
    tried:
      "With an open network, asked the proxy inside for a listener on the host's loopback under many names, and for the host's, private and metadata addresses.",
    observe: (context) =>
      ask(context, {
        network: open,
        targets: (port) => [...disguises(port), ...ownAddresses(port), "169.254.169.254:80", "10.255.255.1:80", "[fd00:ec2::254]:80"],
      }),
    judge: refusedAll,
    describe: describeAnswers,
  }),
  defineClaim<EgressAnswers>({
    id: "N10",
    title: "An empty allowlist allows nothing",
    group: "network",
    tried: "With an empty allowlist, asked the proxy inside for the host's loopback, a public address and a name.",
    observe: (context) => ask(context, { network: nothing, targets: (port) => [`127.0.0.1:${port}`, "1.1.1.1:80", "example.com:80"] }),
    judge: refusedAll,
    describe: describeAnswers,
  }),
  defineClaim<Carried>({
    id: "N14",
    title: "HTTP/2 without TLS cannot reach another host through an allowed one",
    group: "network",
    tried: "With one address allowed, asked the proxy inside to connect to it, and sent the start of HTTP/2 over the connection.",
    observe: speakHttp2,
    judge: ({ connected, received }) => [
      ...(connected ? [] : ["the allowed address could not be reached, so nothing was tried"]),
      ...(received.includes("PRI") ? ["the start of HTTP/2 arrived"] : []),
    ],
    describe: ({ received }) => `the server received ${received.length} bytes`,
  }),
];

interface Carried {
  /** Whether the proxy connected to the allowed address. */
  connected: boolean;
  /** The bytes that arrived there. */
  received: string;
}

async function speakHttp2(context: AttackContext): Promise<Carried | NotTried> {
  if (!context.capabilities.network.includes("allow")) return unverifiable("the runtime does not support such a network");
  let received = "";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1").slice(0, 100);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 9;
  try {
    const rules = [{ host: "host.caisson", ports: [port], private: true }];
    const sandbox = await context.create({ network: NetworkPolicy.parse({ mode: "allow", rules }) });
    if (sandbox.network === null) return unverifiable("no process serves a network here");
    const { stdout, ended } = await context.shell(sandbox, connectAndSpeak, [`host.caisson:${port}`]);
    if (ended.kind === "exited" && ended.exitCode === 3) return unverifiable("no program inside can use the proxy (bash)");
    await sandbox.destroy();
    return { connected: /^HTTP\/1\.1 200/m.test(stdout), received };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Other spellings of loopback, and the name under which it can be allowed. */
function disguises(port: string): string[] {
  const hosts = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
    "host.caisson",
  ];
  return hosts.map((host) => `${host}:${port}`);
}

function ownAddresses(port: string): string[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter((each) => !each.internal && each.family === "IPv4")
    .map((each) => `${each.address}:${port}`);
}

async function ask(
  context: AttackContext,
  options: { network: NetworkPolicy; targets: (port: string) => string[] },
): Promise<EgressAnswers | NotTried> {
  if (!context.capabilities.network.includes(options.network.mode)) return unverifiable("the runtime does not support such a network");
  let arrived = 0;
  const server = createServer((socket) => {
    arrived += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? String(address.port) : "9";
  try {
    const sandbox = await context.create({ network: options.network });
    if (sandbox.network === null) return unverifiable("no process serves a network here");
    const answers: Record<string, string> = {};
    for (const target of options.targets(port)) {
      const { stdout, stderr, ended } = await context.shell(sandbox, askProxy, [target]);
      if (ended.kind === "exited" && ended.exitCode === 3)
        return unverifiable("no program inside can use the proxy (bash, python3 or curl)");
      answers[target] = /^HTTP\/1\.1 (\d{3})/m.exec(stdout)?.[1] ?? `no answer: ${(stdout + stderr).slice(0, 80)}`;
    }
    await sandbox.destroy();
    return { answers, arrived };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Requests `$1` from the proxy and prints the status line. */
const askProxy = [
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own.
  'p="${http_proxy##*:}"; p="${p%/}"',
  'if command -v bash >/dev/null; then exec bash -c \'exec 3<>/dev/tcp/127.0.0.1/$1 && printf "GET http://%s/ HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" "$2" "$2" >&3 && head -n 1 <&3\' bash "$p" "$1"',
  'elif command -v curl >/dev/null; then exec curl -s -i -m 20 -x "127.0.0.1:$p" "http://$1/"',
  "else exit 3; fi",
].join("\n");

/** Requests a connection to `$1`, prints the answer, and waits until the bytes that follow are rejected or accepted. */
const connectAndSpeak = [
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own.
  'p="${http_proxy##*:}"; p="${p%/}"',
  "command -v bash >/dev/null || exit 3",
  'exec bash -c \'exec 3<>/dev/tcp/127.0.0.1/$1 && printf "CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" "$2" "$2" >&3 && head -n 1 <&3',
  'printf "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" >&3; read -r -t 2 -u 3 _; read -r -t 2 -u 3 _; exit 0\' bash "$p" "$1"',
].join("\n");

function refusedAll({ answers, arrived }: EgressAnswers): string[] {
  const wrong = Object.entries(answers).filter(([, status]) => !/^[45]\d\d$/.test(status));
  return [
    ...wrong.map(([target, status]) => `${target}: ${status}`),
    ...(arrived === 0 ? [] : [`${arrived} connections arrived at the host`]),
  ];
}

function describeAnswers({ answers }: EgressAnswers): string {
  return Object.entries(answers)
    .map(([target, status]) => `${target}: ${status}`)
    .join(", ");
}
