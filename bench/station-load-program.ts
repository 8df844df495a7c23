/**
 * Requests of all kinds at a fixed rate: `station-load-program.ts JSON`. A request's time counts from when it was due, so that a station that stalls is not
 * spared those that would have come meanwhile. Prints what came of them as JSON.
 */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { summarise } from "./measure.ts";
import type { LoadResult } from "./station-load.ts";

const { url, token, sandbox, run, rate, seconds } = JSON.parse(process.argv[2] ?? "{}") as Record<
  "url" | "token" | "sandbox" | "run",
  string
> &
  Record<"rate" | "seconds", number>;
const agent = new Agent({ keepAlive: true, maxSockets: 128 });
const TICK_MS = 2;

interface Kind {
  name: string;
  /** Of a hundred requests. */
  share: number;
  method: "GET" | "POST" | "PUT";
  path: string;
  body?: string;
}

const content = `/v1/sandboxes/${sandbox}/files/content?path=/workspace`;
const kinds: readonly Kind[] = [
  { name: "a page of runs", share: 30, method: "GET", path: "/v1/runs?limit=50&state=open" },
  { name: "one run", share: 20, method: "GET", path: `/v1/runs/${run}` },
  { name: "a page of its events", share: 15, method: "GET", path: `/v1/runs/${run}/events?limit=50` },
  { name: "the station's status", share: 12, method: "GET", path: "/v1/status" },
  { name: "sandboxes", share: 8, method: "GET", path: "/v1/sandboxes?limit=50" },
  { name: "a small file read", share: 8, method: "GET", path: `${content}/small` },
  { name: "a small file written", share: 4, method: "PUT", path: `${content}/written`, body: "x".repeat(1024) },
  { name: "a command", share: 3, method: "POST", path: `/v1/sandboxes/${sandbox}/exec`, body: JSON.stringify({ argv: ["true"] }) },
];
/** A hundred of them in an order in which equal ones are apart. */
const order = kinds
  .flatMap((kind) => Array.from({ length: kind.share }, (_, at) => ({ kind, at: (at + 0.5) / kind.share })))
  .sort((left, right) => left.at - right.at)
  .map(({ kind }) => kind);

const times = new Map<string, number[]>(kinds.map(({ name }) => [name, []]));
let failed = 0;

function ask({ name, method, path, body }: Kind, dueMs: number): Promise<void> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && {
        "content-length": Buffer.byteLength(body),
        "content-type": method === "POST" ? "application/json" : "application/octet-stream",
      }),
    };
    const fail = (why: string) => {
      failed += 1;
      if (failed <= 5) process.stderr.write(`${name}: ${why}\n`);
      resolve();
    };
    const sent = request(`${url}${path}`, { method, agent, headers }, (answer) => {
      let text = "";
      answer.on("data", (data: Buffer) => {
        if (answer.statusCode !== 200 && answer.statusCode !== 201) text += data.toString();
      });
      answer.on("error", (error) => fail(error.message));
      answer.on("end", () => {
        if ((answer.statusCode ?? 0) >= 300) return fail(`${answer.statusCode} ${text.slice(0, 300)}`);
        times.get(name)?.push(performance.now() - dueMs);
        resolve();
      });
    });
    sent.on("error", (error) => fail(error.message));
    sent.end(body);
  });
}

const startMs = performance.now();
const asked: Promise<void>[] = [];
for (let n = 0; n < rate * seconds; await delay(TICK_MS)) {
  for (const now = performance.now(); n < rate * seconds && startMs + (n * 1000) / rate <= now; n++)
    asked.push(ask(order[n % order.length] as Kind, startMs + (n * 1000) / rate));
}
await Promise.all(asked);
const tookSeconds = (performance.now() - startMs) / 1000;
const quantiles = (values: readonly number[]) => ({ p50: summarise(values).p50, p99: summarise(values).p99, n: values.length });
const all = [...times.values()].flat();
const result: LoadResult = {
  asked: asked.length,
  answered: all.length + failed,
  failed,
  perSecond: all.length / tookSeconds,
  ...quantiles(all),
  kinds: Object.fromEntries([...times].map(([name, values]) => [name, quantiles(values)])),
};
process.stdout.write(JSON.stringify(result));
process.exit(0);
