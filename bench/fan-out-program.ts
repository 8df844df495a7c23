/**
 * Follows a station's events: `fan-out-program.ts SOCKET FOLLOWERS EVENTS`. Prints a line when all followers have
 * subscribed, and at the end how long the events took from their append.
 */
import { nodeSockets } from "../src/client/node-sockets.ts";
import type { EventsServerMessage } from "../src/contract/api/streams.ts";

const [socketPath = "", followers = "1", events = "1"] = process.argv.slice(2);
const open = nodeSockets({ socketPath });
const wanted = Number(events);
/** How many events took this many milliseconds. */
const took: number[] = [];
let received = 0;
let wrong = 0;

function follow(): { subscribed: Promise<void>; done: Promise<void> } {
  const subscribed = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const socket = open("ws://station/v1/stream", { protocol: "caisson.v1", token: undefined });
  let last = 0;
  socket.onopen = () => socket.send(JSON.stringify({ type: "subscribe", afterPosition: "end" }));
  socket.onmessage = ({ data }: { data: string }) => {
    const message = JSON.parse(data) as EventsServerMessage;
    if (message.type === "subscribed") subscribed.resolve();
    if (message.type !== "events") return;
    const now = Date.now();
    for (const { seq, event } of message.events) {
      if (seq !== last + 1) wrong += 1;
      last = seq;
      received += 1;
      const ms = Math.max(0, now - Date.parse(event?.at ?? ""));
      took[ms] = (took[ms] ?? 0) + 1;
    }
    if (last >= wanted) done.resolve();
  };
  socket.onclose = () => done.resolve();
  return { subscribed: subscribed.promise, done: done.promise };
}

/** Returns the time within which this part of the events arrived. */
function quantile(part: number): number {
  let left = received * part;
  for (let ms = 0; ms < took.length; ms += 1) {
    left -= took[ms] ?? 0;
    if (left <= 0) return ms;
  }
  return took.length;
}

const all = Array.from({ length: Number(followers) }, follow);
await Promise.all(all.map(({ subscribed }) => subscribed));
process.stdout.write("ready\n");
await Promise.all(all.map(({ done }) => done));
process.stdout.write(`${JSON.stringify({ received, wrong, p50: quantile(0.5), p99: quantile(0.99), most: took.length - 1 })}\n`);
process.exit(0);
