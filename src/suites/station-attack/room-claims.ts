import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { ask } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

/** More than one address may open, but too few to harm the machine. */
const SILENT_CONNECTIONS = 600;
const THINGS_MAX = 80;
const BURST = 400;

/** Attempts by one caller to take resources from others. */
export const roomClaims: StationClaim[] = [
  defineStationClaim<{ held: number; status: number; tookMs: number }>({
    id: "C01",
    title: "One address's connections do not lock out other callers",
    group: "room",
    tried: `Opened ${SILENT_CONNECTIONS} silent connections from one address, without a token, and made a call from another.`,
    async observe(context) {
      const { hostname, port } = new URL(context.url);
      const sockets: Socket[] = [];
      try {
        for (let count = 0; count < SILENT_CONNECTIONS; count++) {
          const socket = connect({ host: hostname, port: Number(port), localAddress: "127.0.0.2" });
          socket.on("error", () => undefined);
          sockets.push(socket);
        }
        await delay(500);
        const held = sockets.filter((socket) => !socket.destroyed && !socket.connecting).length;
        const { status, tookMs } = await ask(context, "/v1/status", { token: context.bob });
        return { held, status, tookMs: Math.round(tookMs) };
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    },
    judge: ({ status, tookMs }) => [
      ...(status === 200 ? [] : [`a call from another address was answered with ${status}`]),
      ...(tookMs > 3_000 ? [`it took ${tookMs} ms`] : []),
    ],
    describe: ({ held, tookMs }) => `${held} were held open; the other call took ${tookMs} ms`,
  }),
  defineStationClaim<{ kinds: { kind: string; made: number; refusedWith: number | null; other: number }[] }>({
    id: "C02",
    title: "One owner cannot exhaust shared resources",
    group: "room",
    tried: `Created up to ${THINGS_MAX} webhooks and secrets as one owner, then one of each as another.`,
    observe: observeShares,
    judge: ({ kinds }) =>
      kinds.flatMap(({ kind, made: count, other }) => [
        ...(count === 0 ? [`no ${kind} could be created`] : []),
        ...(other >= 200 && other < 300 ? [] : [`after one owner's ${count}, another owner's ${kind} was answered with ${other}`]),
      ]),
    describe: ({ kinds }) =>
      kinds
        .map(({ kind, made: count, refusedWith }) => `${count} ${kind}s, then ${refusedWith ?? "not rejected"}; the other owner had room`)
        .join("; "),
  }),
  defineStationClaim<{ answers: Record<string, number>; withoutRetry: number; other: { status: number; tookMs: number } }>({
    id: "C03",
    title: "A burst is answered or rejected, and another owner is served at the same time",
    group: "room",
    tried: `Made ${BURST} simultaneous calls as one owner, and a few as another at the same time.`,
    observe: observeBurst,
    judge: ({ answers, withoutRetry, other }) => [
      ...Object.entries(answers).flatMap(([status, count]) =>
        ["200", "429", "503"].includes(status) ? [] : [`${count} ended with ${status}`],
      ),
      ...(withoutRetry > 0 ? [`${withoutRetry} rejections did not say when to retry`] : []),
      ...(other.status === 200 ? [] : [`the other owner was answered with ${other.status}`]),
      ...(other.tookMs > 5_000 ? [`the other owner waited ${other.tookMs} ms`] : []),
    ],
    describe: ({ answers, other }) =>
      `${Object.entries(answers)
        .map(([status, count]) => `${count} × ${status}`)
        .join(", ")}; the other owner waited at most ${other.tookMs} ms`,
  }),
  defineStationClaim<{ status: number; failed: string | null }>({
    id: "C04",
    title: "A body that is too large is rejected before it is sent",
    group: "room",
    tried: "Declared a JSON body of 1 GiB and sent none of it.",
    async observe(context) {
      const headers = { "content-length": String(2 ** 30), "content-type": "application/json", expect: "100-continue" };
      const { status, failed } = await ask(context, "/v1/runs", { method: "POST", token: context.ada, headers, timeoutMs: 5_000 });
      return { status, failed };
    },
    judge: ({ status, failed }) => (status === 413 || status === 429 || status === 503 ? [] : [`it was answered with ${failed ?? status}`]),
    describe: ({ status }) => `rejected with ${status}`,
  }),
];

async function observeShares(context: StationContext) {
  const makers = {
    webhook: (owner: string, n: number) =>
      ask(context, "/v1/webhooks", { token: owner, body: { name: `share-${n}`, url: "https://example.com/share" } }),
    secret: (owner: string, n: number) =>
      ask(context, `/v1/secrets/SHARE_${n}`, {
        method: "PUT",
        token: owner,
        body: { value: "a-value-that-is-long", hosts: ["example.com"] },
      }),
  };
  const kinds: { kind: string; made: number; refusedWith: number | null; other: number }[] = [];
  for (const [kind, make] of Object.entries(makers)) {
    let count = 0;
    let refusedWith: number | null = null;
    while (count < THINGS_MAX && refusedWith === null) {
      const { status } = await make(context.ada, count);
      if (status >= 200 && status < 300) count += 1;
      else refusedWith = status;
    }
    kinds.push({ kind, made: count, refusedWith, other: (await make(context.bob, 0)).status });
  }
  return { kinds };
}

async function observeBurst(context: StationContext) {
  const answers: Record<string, number> = {};
  let withoutRetry = 0;
  let isOver = false;
  const burst = Promise.all(
    [...Array(BURST).keys()].map(async () => {
      const { status, headers, failed } = await ask(context, "/v1/runs", { token: context.ada, from: "127.0.0.3", timeoutMs: 30_000 });
      const key = failed ?? String(status);
      answers[key] = (answers[key] ?? 0) + 1;
      if ((status === 429 || status === 503) && headers["retry-after"] === undefined) withoutRetry += 1;
    }),
  ).finally(() => {
    isOver = true;
  });
  const other = { status: 200, tookMs: 0 };
  do {
    const { status, tookMs } = await ask(context, "/v1/status", { token: context.bob });
    other.tookMs = Math.max(other.tookMs, Math.round(tookMs));
    if (status !== 200) other.status = status;
    await delay(50);
  } while (!isOver);
  await burst;
  return { answers, withoutRetry, other };
}
