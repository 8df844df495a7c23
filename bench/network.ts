import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCaisson } from "../src/index.ts";
import { createPreview } from "../src/network/preview/preview.ts";
import { PROXY_PORT } from "../src/network/sandbox-setup/ports.ts";
import { runCommand } from "../src/sandbox/run-command.ts";
import type { OwnedSandbox } from "../src/sandbox/sandbox.ts";
import { summarise } from "./measure.ts";
import { runPeer } from "./peers.ts";
import type { Row, Target } from "./report.ts";

const CONNECTIONS = 32;
const SECONDS = 2;
const ROUNDS = 3;
const BULK_BYTES = 1_000_000_000;

/** A server that runs on either side, with the host's Node and the sandbox's. */
const NODE_SERVER = `
  const server = require("node:http").createServer((_, response) => {
    response.setHeader("content-type", "text/plain");
    response.setHeader("content-length", 13);
    response.end("hello, world\\n");
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
  process.stdin.resume().once("end", () => process.exit(0));
`;

/** Where the load runs: beside the server, or inside a sandbox. */
type Run = (argv: readonly string[], request: string) => Promise<string>;

interface Requests {
  perSecond: number;
  p50Ms: number;
  p95Ms: number;
}

/**
 * Measures the way out and the way in, each beside what a user would use instead; the load and the server are the same
 * programs on both sides.
 */
export async function benchNetwork(): Promise<{ rows: Row[]; targets: Target[] }> {
  const dir = await mkdtemp(join(tmpdir(), "caisson-bench-"));
  const children: ChildProcess[] = [];
  try {
    for (const name of ["load", "upstream"]) await compile(name, dir);
    const start = async (argv: readonly string[]) => startPeer(argv, children);
    const program = join(import.meta.dirname, "network-peers-program.ts");
    const upstream = await start([join(dir, "network-upstream")]);
    const proxy = await start([process.execPath, program]);
    await using caisson = createCaisson({ stateDir: join(dir, "state") });
    await using sandbox = await caisson.create({
      workspace: { kind: "folder", path: dir, access: "ro" },
      network: { mode: "allow", rules: [{ host: "127.0.0.1", ports: [upstream], private: true }] },
    });
    const here: Run = (argv, request) => runPeer([join(dir, "network-load"), ...argv], { input: request });
    const bench = { sandbox, upstream, proxy, here, inside: insideOf(sandbox) };
    const out = await benchRequests(bench);
    const bulk = await benchBulk(bench);
    const preview = await benchPreview(bench, start);
    const parts = [out, bulk, preview];
    return { rows: parts.flatMap(({ rows }) => rows), targets: parts.flatMap(({ targets }) => targets) };
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await rm(dir, { recursive: true, force: true });
  }
}

interface Bench {
  sandbox: OwnedSandbox;
  upstream: number;
  proxy: number;
  here: Run;
  inside: Run;
}

async function benchRequests({ upstream, proxy, here, inside }: Bench): Promise<{ rows: Row[]; targets: Target[] }> {
  const group = "HTTP requests, 13 bytes, kept alive";
  const request = `GET http://127.0.0.1:${upstream}/ HTTP/1.1\r\nHost: 127.0.0.1:${upstream}\r\n\r\n`;
  const rows: Row[] = [];
  const measure = async (name: string, where: Run, port: number, connections: number) => {
    const found = await requests(where, port, connections, port === upstream ? request.replace(/ http:..[^/]*/, " ") : request);
    if (connections > 1)
      rows.push({ group: `${group}, ${connections} connections`, name, value: found.perSecond, unit: "per s", n: ROUNDS });
    else rows.push({ group: `${group}, one after another`, name, value: found.p50Ms, p95: found.p95Ms, unit: "ms", n: ROUNDS });
    return found;
  };
  await measure("no proxy", here, upstream, CONNECTIONS);
  const bare = await measure("a bare Node proxy on the host", here, proxy, CONNECTIONS);
  const ours = await measure("**egress**, from inside a sandbox", inside, PROXY_PORT, CONNECTIONS);
  const direct = await measure("no proxy", here, upstream, 1);
  await measure("a bare Node proxy on the host", here, proxy, 1);
  const one = await measure("**egress**, from inside a sandbox", inside, PROXY_PORT, 1);
  return {
    rows,
    targets: [
      {
        name: "requests through egress over a bare Node proxy",
        measured: ours.perSecond / bare.perSecond,
        unit: "×",
        atLeast: 0.6,
      },
      { name: "latency that egress adds to a request", measured: one.p50Ms - direct.p50Ms, unit: "ms", atMost: 1 },
    ],
  };
}

async function benchBulk({ upstream, proxy, here, inside }: Bench): Promise<{ rows: Row[]; targets: Target[] }> {
  const to = `127.0.0.1:${upstream}`;
  const get = (target: string) => `GET ${target}/big/${BULK_BYTES} HTTP/1.1\r\nHost: ${to}\r\n\r\n`;
  const tunnel = `CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n\r\n${get("")}`;
  const rows: Row[] = [];
  const measure = async (name: string, where: Run, port: number, request: string) => {
    const rates: number[] = [];
    for (let round = 0; round < ROUNDS; round++) rates.push(await bulk(where, port, request));
    const value = summarise(rates).p50;
    rows.push({ group: "1 GB, one connection", name, value, unit: "MB/s", n: ROUNDS });
    return value;
  };
  await measure("no proxy", here, upstream, get(""));
  await measure("a bare Node proxy on the host, request", here, proxy, get(`http://${to}`));
  await measure("a bare Node proxy on the host, CONNECT", here, proxy, tunnel);
  // The first passes allocate the buffers that all later ones use.
  for (const request of [tunnel, get(`http://${to}`)]) await bulk(inside, PROXY_PORT, request);
  const before = rss();
  const asRequest = await measure("**egress**, request", inside, PROXY_PORT, get(`http://${to}`));
  const asTunnel = await measure("**egress**, CONNECT", inside, PROXY_PORT, tunnel);
  const grownMib = (rss() - before) / 2 ** 20;
  return {
    rows,
    targets: [
      { name: "bulk through egress, the slower way", measured: Math.min(asRequest, asTunnel), unit: "MB/s", atLeast: 250 },
      { name: `host memory growth over ${2 * ROUNDS} GB`, measured: grownMib, unit: "MiB", atMost: 32 },
    ],
  };
}

/**
 * Measures a program's own web server, as users preview it: on the host, and inside behind a preview. Then the same
 * with a server that does no work, to show the preview's own limit.
 */
async function benchPreview(
  { sandbox, upstream, here }: Bench,
  start: (argv: readonly string[]) => Promise<number>,
): Promise<{ rows: Row[]; targets: Target[] }> {
  const rows: Row[] = [];
  const measure = async (name: string, port: number, host: string) => {
    const { perSecond } = await requests(here, port, CONNECTIONS, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    rows.push({ group: `requests of a page, ${CONNECTIONS} connections`, name, value: perSecond, unit: "per s", n: ROUNDS });
    return perSecond;
  };
  const previewed = async (name: string, argv: readonly string[]) => {
    const server = await startInside(sandbox, argv);
    const preview = await createPreview({ connect: (port) => sandbox.connect(port), port: server.port });
    try {
      return await measure(name, preview.listenPort, new URL(preview.url).host);
    } finally {
      await preview.revoke();
      await server.stop();
    }
  };
  const node = ["/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "node", "-e", NODE_SERVER];
  const direct = await measure("a Node server on the host", await start(node), "localhost");
  const through = await previewed("**preview** of the same, inside a sandbox", node);
  await measure("a server that does nothing, on the host", upstream, "localhost");
  await previewed("**preview** of the same, inside a sandbox", ["/workspace/network-upstream"]);
  return {
    rows,
    targets: [{ name: "requests through a preview over direct ones", measured: through / direct, unit: "×", atLeast: 0.7 }],
  };
}

async function startInside(sandbox: OwnedSandbox, argv: readonly string[]): Promise<{ port: number; stop(): Promise<void> }> {
  const process = await sandbox.spawn({ argv, stdin: "pipe" });
  for await (const { data } of process.output) return { port: Number(Buffer.from(data).toString()), stop: () => process.kill() };
  throw new Error(`${argv[0]} ended inside: ${JSON.stringify(await process.ended)}`);
}

async function requests(where: Run, port: number, connections: number, request: string): Promise<Requests> {
  const rounds: Requests[] = [];
  // One extra round: the first is a warm-up.
  for (let round = 0; round <= ROUNDS; round++) {
    const text = await where(["requests", "127.0.0.1", String(port), String(connections), String(round === 0 ? 1 : SECONDS)], request);
    const { requests: count, seconds, p50Us, p95Us } = JSON.parse(text) as Record<"requests" | "seconds" | "p50Us" | "p95Us", number>;
    if (round > 0) rounds.push({ perSecond: count / seconds, p50Ms: p50Us / 1000, p95Ms: p95Us / 1000 });
  }
  const median = (field: keyof Requests) => summarise(rounds.map((round) => round[field])).p50;
  return { perSecond: median("perSecond"), p50Ms: median("p50Ms"), p95Ms: median("p95Ms") };
}

/** Returns MB/s. */
async function bulk(where: Run, port: number, request: string): Promise<number> {
  const { bytes, seconds } = JSON.parse(await where(["bulk", "127.0.0.1", String(port), String(BULK_BYTES)], request)) as Record<
    "bytes" | "seconds",
    number
  >;
  if (bytes < BULK_BYTES) throw new Error(`${bytes} bytes came of ${BULK_BYTES}`);
  return bytes / 1e6 / seconds;
}

function insideOf(sandbox: OwnedSandbox): Run {
  return async (argv, request) => {
    const { ended, stdout, stderr } = await runCommand(sandbox, {
      argv: ["/workspace/network-load", ...argv],
      input: Buffer.from(request),
    });
    if (ended.kind !== "exited" || ended.exitCode !== 0) throw new Error(`the load inside ended: ${JSON.stringify(ended)} ${stderr}`);
    return stdout;
  };
}

async function compile(name: string, dir: string): Promise<void> {
  await runPeer(["cc", "-O2", "-static", "-o", join(dir, `network-${name}`), join(import.meta.dirname, `network-${name}.c`)]);
}

/** Starts a program that prints the port it listens on. It ends with its input, and so with us. */
async function startPeer([program = "", ...args]: readonly string[], children: ChildProcess[]): Promise<number> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return Number(line.toString());
}

function rss(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}
