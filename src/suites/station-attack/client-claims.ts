import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

const TOKEN = `tok_${"a".repeat(12)}_${"b".repeat(52)}`;
/** Longer than our client may wait for a first answer. */
const WAIT_MS_MAX = 60_000;
const ENDLESS_BYTES_MAX = 256 * 1024 * 1024;

/** Attacks on our client by a lying station. */
export const clientClaims: StationClaim[] = [
  defineStationClaim<{ outcome: string; tookMs: number }>({
    id: "L01",
    title: "The client does not wait indefinitely for a silent station",
    group: "client",
    tried: "Requested the status from a server that accepts the connection and never answers.",
    observe: (context) => againstLiar(context, () => undefined),
    judge: ({ outcome, tookMs }) => [
      ...(outcome === "answered" ? ["it treated silence as an answer"] : []),
      ...(tookMs >= WAIT_MS_MAX ? [`it was still waiting after ${WAIT_MS_MAX} ms`] : []),
    ],
    describe: ({ outcome, tookMs }) => `${outcome} after ${tookMs} ms`,
  }),
  defineStationClaim<{ outcome: string; carried: boolean; reached: boolean }>({
    id: "L02",
    title: "The client sends its token to no other address",
    group: "client",
    tried: "Answered our client with a redirect to another server.",
    async observe(context) {
      const seen = { carried: false, reached: false };
      const other = await listening((request: IncomingMessage) => {
        seen.reached = true;
        seen.carried ||= request.headers.authorization !== undefined;
        request.socket.destroy();
      });
      try {
        const { outcome } = await againstLiar(context, (_request, answer) =>
          answer.writeHead(307, { location: `${other.url}/v1/status` }).end(),
        );
        return { outcome, ...seen };
      } finally {
        await other.close();
      }
    },
    judge: ({ outcome, carried, reached }) => [
      ...(carried ? ["the token arrived there"] : []),
      ...(reached ? ["it followed the redirect"] : []),
      ...(outcome === "answered" ? ["it treated the redirect as an answer"] : []),
    ],
  }),
  defineStationClaim<{ outcome: string; sentBytes: number }>({
    id: "L03",
    title: "The client does not read an answer indefinitely",
    group: "client",
    tried: "Answered a status request with endless JSON.",
    async observe(context) {
      let sentBytes = 0;
      const { outcome } = await againstLiar(context, (_request, answer) => {
        answer.writeHead(200, { "content-type": "application/json" });
        const piece = Buffer.from(`"${"a".repeat(1024 * 1024)}",`);
        const send = () => {
          while (!answer.destroyed && sentBytes < ENDLESS_BYTES_MAX) {
            sentBytes += piece.length;
            if (!answer.write(piece)) return void answer.once("drain", send);
          }
          if (!answer.destroyed) answer.end();
        };
        answer.write("[");
        send();
      });
      return { outcome, sentBytes };
    },
    judge: ({ outcome, sentBytes }) => [
      ...(outcome === "answered" ? ["it accepted the answer"] : []),
      ...(sentBytes >= ENDLESS_BYTES_MAX ? [`it read ${ENDLESS_BYTES_MAX} bytes`] : []),
    ],
    describe: ({ outcome, sentBytes }) => `${outcome} after at most ${sentBytes} bytes`,
  }),
];

async function againstLiar(context: StationContext, answer: RequestListener): Promise<{ outcome: string; tookMs: number }> {
  const liar = await listening(answer);
  const began = performance.now();
  try {
    const outcome = await context.within("our client", context.station.askStatus(liar.url, TOKEN), WAIT_MS_MAX).then(
      () => "answered",
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    return { outcome: outcome.slice(0, 200), tookMs: Math.round(performance.now() - began) };
  } finally {
    await liar.close();
  }
}

async function listening(
  listener: RequestListener | ((request: IncomingMessage) => void),
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(listener as RequestListener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
