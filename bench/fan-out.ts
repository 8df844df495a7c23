import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { WebSocket } from "ws";
import { startServer } from "../src/api/server.ts";
import { nodeSockets } from "../src/client/node-sockets.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { allEvents } from "../src/station/runs/run-events.ts";
import { runStream } from "../src/station/vocabulary/station-names.ts";
import type { Station } from "../src/verbs/station.ts";
import type { Figures } from "./report.ts";

const SUBSCRIBERS = 200;
const EVENTS = 5_000;
/** The rate of a talkative run; each event is appended alone. */
const EVENTS_PER_SECOND = 250;
const PAUSE_MS = 20;

/** Measures the events of one run with many followers over WebSockets, one of which reads nothing. */
export async function benchFanOut(): Promise<Figures> {
  await using dir = await mkdtempDisposable(join(tmpdir(), "caisson-bench-fan-out-"));
  await using log = createSqliteLog({ path: join(dir.path, "log.db") });
  const runs = {
    allEvents: (options: { afterPosition?: number; signal?: AbortSignal } = {}) => allEvents(log, options),
    lastPosition: () => log.lastPosition(),
  };
  await using server = await startServer({
    // The server uses only the station's runs.
    stationFor: () => ({ runs }) as unknown as Station,
    authenticate: async () => null,
    authenticateSandbox: () => {
      throw new Error("no sandbox calls this server");
    },
    runs: { counts: () => ({ atWork: 0, queued: 0, draining: false }), drain() {}, idle: async () => {} },
    audit: { recordCall: async () => {}, recordFailure: async () => {} },
    stateDir: dir.path,
    version: "0",
    settings: "",
    listenHost: "127.0.0.1",
    port: 0,
    consoleDir: join(dir.path, "console"),
    onDefect: (error) => {
      throw error;
    },
  });
  const subscribers = startSubscribers(server.socketPath);
  await subscribers.line("ready");
  const stalled = await openStalled(server.socketPath);
  const append = (step: number) => log.append(runStream("run_aaaaaaaaaaaa"), [event(step)]);
  const before = keptBytes();
  const startMs = performance.now();
  for (let step = 1; step <= EVENTS; ) {
    for (const due = ((performance.now() - startMs) / 1000) * EVENTS_PER_SECOND; step <= Math.min(due, EVENTS); step += 1)
      await append(step);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const result = JSON.parse(await subscribers.line("{")) as { received: number; wrong: number; p50: number; p99: number; most: number };
  const grownMiB = (keptBytes() - before) / 2 ** 20;
  const wholeMiB = process.memoryUsage.rss() / 2 ** 20;
  stalled.terminate();
  const group = `${SUBSCRIBERS} followers of ${EVENTS} events`;
  const note = `${EVENTS_PER_SECOND} events a second, at most ${result.most.toFixed(0)} ms`;
  return {
    rows: [
      { group, name: "from append to follower, median", value: result.p50, unit: "ms", n: result.received, note },
      { group, name: "the same, p99", value: result.p99, unit: "ms", n: result.received },
      {
        group,
        name: "memory growth of the station, with one stalled follower",
        value: grownMiB,
        unit: "MiB",
        n: 1,
        note: `${wholeMiB.toFixed(0)} MiB in total`,
      },
    ],
    targets: [
      { name: "events lost or out of order", measured: SUBSCRIBERS * EVENTS - result.received + result.wrong, unit: "left", atMost: 0 },
      { name: "from append to one of 200 followers, p99", measured: result.p99, unit: "ms", atMost: 250 },
      { name: "memory growth over 1,000,000 events", measured: grownMiB, unit: "MiB", atMost: 32 },
    ],
  };
}

/** Returns the bytes that are not garbage. */
function keptBytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const event = (step: number) => ({
  type: "model.ended",
  version: 1,
  data: {
    call: `m${step}`,
    parts: [{ kind: "text", text: "some words of the model ".repeat(5) }],
    usage: { inputTokens: 10, outputTokens: 10, cachedInputTokens: 0, reasoningTokens: 0 },
    costUsd: 0.001,
    stop: "end",
    durationMs: 10,
  },
});

/** A separate process, so the followers' cost is not the station's. */
function startSubscribers(socketPath: string) {
  const program = join(import.meta.dirname, "fan-out-program.ts");
  const child = spawn(process.execPath, [program, socketPath, String(SUBSCRIBERS), String(EVENTS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async line(beginning: string): Promise<string> {
      const { done, value } = await lines.next();
      if (done || !value.startsWith(beginning)) throw new Error(`unexpected output of the followers: ${value}`);
      return value;
    },
  };
}

async function openStalled(socketPath: string): Promise<WebSocket> {
  const socket = nodeSockets({ socketPath })("ws://station/v1/stream", {
    protocol: "caisson.v1",
    token: undefined,
  }) as unknown as WebSocket;
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "subscribe", afterPosition: "end" }));
  await once(socket, "message");
  socket.pause();
  return socket;
}
