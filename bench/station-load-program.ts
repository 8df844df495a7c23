/**
 * Sends requests at a fixed rate: `station-load-program.ts JSON`. A request's time counts from when it was due, so a
 * station that stalls pays for the requests of that time too. Prints the results as JSON, with refused requests apart.
 */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { summarise } from "./measure.ts";
import type { LoadOrder, LoadResult } from "./station-load-result.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as LoadOrder;
const { url, token, rate, seconds, kinds, sockets } = order;
const agent = new Agent({ keepAlive: sockets > 0, maxSockets: sockets > 0 ? sockets : Number.POSITIVE_INFINITY });
const TICK_MS = 2;
const TIMEOUT_MS = 30_000;
const SAID_MAX = 3;

/** A hundred requests, in an order that separates equal ones. */
const turns = kinds
  .flatMap((kind) => Array.from({ length: kind.share }, (_, at) => ({ kind, at: (at + 0.5) / kind.share })))
  .sort((left, right) => left.at - right.at)
  .map(({ kind }) => kind);

const times = new Map<string, number[]>(kinds.map(({ name }) => [name, []]));
const refusedMs: number[] = [];
const failures: Record<string, number> = {};
let failed = 0;

function ask({ name, method, path, body }: LoadOrder["kinds"][number], dueMs: number): Promise<void> {
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
      failures[why] = (failures[why] ?? 0) + 1;
      if (failed <= SAID_MAX) process.stderr.write(`${name}: ${why}\n`);
      resolve();
    };
    const sent = request(`${url}${path}`, { method, agent, headers, timeout: TIMEOUT_MS }, (answer) => {
      const { statusCode = 0 } = answer;
      answer.resume();
      answer.on("error", (error) => fail((error as NodeJS.ErrnoException).code ?? error.message));
      answer.on("end", () => {
        const tookMs = performance.now() - dueMs;
        const isRefused = (statusCode === 503 || statusCode === 429) && answer.headers["retry-after"] !== undefined;
        if (isRefused) refusedMs.push(tookMs);
        else if (statusCode < 300) times.get(name)?.push(tookMs);
        else return fail(`status ${statusCode}`);
        resolve();
      });
    });
    sent.on("timeout", () => sent.destroy(new Error("timeout")));
    sent.on("error", (error) => fail((error as NodeJS.ErrnoException).code ?? error.message));
    sent.end(body);
  });
}

const startMs = performance.now();
const requests: Promise<void>[] = [];
for (let n = 0; n < rate * seconds; await delay(TICK_MS)) {
  for (const now = performance.now(); n < rate * seconds && startMs + (n * 1000) / rate <= now; n++)
    requests.push(ask(turns[n % turns.length] as LoadOrder["kinds"][number], startMs + (n * 1000) / rate));
}
await Promise.all(requests);
const tookSeconds = (performance.now() - startMs) / 1000;
const quantiles = (values: readonly number[]) => ({ p50: summarise(values).p50, p99: summarise(values).p99, n: values.length });
const all = [...times.values()].flat();
const result: LoadResult = {
  asked: requests.length,
  accepted: { ...quantiles(all), perSecond: all.length / tookSeconds },
  refused: quantiles(refusedMs),
  failed,
  failures,
  kinds: Object.fromEntries([...times].map(([name, values]) => [name, quantiles(values)])),
};
process.stdout.write(JSON.stringify(result));
process.exit(0);
