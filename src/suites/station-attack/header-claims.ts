import { ask, sendRaw } from "./ask.ts";
import { defineStationClaim, type StationClaim } from "./station-claim.ts";

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
const answersIn = (text: string): number => text.split("HTTP/1.1 ").length - 1;

/** Attacks by pages of other origins and by malformed requests. */
export const headerClaims: StationClaim[] = [
  defineStationClaim<{ answers: Record<string, number>; cors: string[] }>({
    id: "B01",
    title: "A page of another origin can neither use nor read the station",
    group: "headers",
    tried: "Made calls with another host name, with another origin, and as browser preflights.",
    async observe(context) {
      const answers: Record<string, number> = {};
      const cors: string[] = [];
      const tryOne = async (what: string, path: string, options: Parameters<typeof ask>[2]) => {
        const { status, headers } = await ask(context, path, options);
        answers[what] = status;
        if (headers["access-control-allow-origin"] !== undefined) cors.push(what);
      };
      const token = context.ada;
      for (const host of ["evil.example", "127.0.0.1.evil.example", "169.254.169.254"]) {
        await tryOne(`host ${host}`, "/v1/status", { token, headers: { host } });
        await tryOne(`health as ${host}`, "/healthz", { headers: { host } });
      }
      for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1"]) {
        await tryOne(`origin ${origin}`, "/v1/runs", { token, headers: { origin }, body: { task: "x", model: "scripted:demo" } });
        await tryOne(`preflight of ${origin}`, "/v1/runs", {
          method: "OPTIONS",
          headers: { origin, "access-control-request-method": "POST" },
        });
      }
      return { answers, cors };
    },
    judge: ({ answers, cors }) => [
      ...Object.entries(answers).flatMap(([what, status]) => (status >= 400 ? [] : [`${what}: ${status}`])),
      ...cors.map((what) => `${what}: other origins may read the answer`),
      ...(Object.keys(answers).length === 0 ? ["nothing was tried"] : []),
    ],
    describe: ({ answers }) => `${Object.keys(answers).length} requests, all rejected, none with a CORS header`,
  }),
  defineStationClaim<Record<string, { status: number; answers: number }>>({
    id: "B02",
    title: "An ambiguous request is rejected, and nothing after it is answered",
    group: "headers",
    tried:
      "Sent two lengths, a length with chunks, two hosts, a folded header, and a header of 100 KiB, each followed by a second request.",
    async observe(context) {
      const host = new URL(context.url).host;
      const behind = `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nX: `;
      const requests: Readonly<Record<string, string>> = {
        "two lengths": `POST /v1/runs HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde`,
        "a length beside chunks": `POST /v1/runs HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        "two hosts": `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\n\r\n`,
        "a folded header": `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nA: b\r\n c\r\n\r\n`,
        "a large header": `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nA: ${"x".repeat(100_000)}\r\n\r\n`,
      };
      const seen: Record<string, { status: number; answers: number }> = {};
      for (const [what, text] of Object.entries(requests)) {
        const reply = await sendRaw(context, text + behind);
        seen[what] = { status: statusOf(reply), answers: answersIn(reply) };
      }
      return seen;
    },
    judge: (seen) => [
      ...Object.entries(seen).flatMap(([what, { status, answers }]) => [
        // No answer at all counts as a rejection.
        ...(status === 0 || status >= 400 ? [] : [`${what}: ${status}`]),
        ...(answers <= 1 ? [] : [`${what}: ${answers} answers`]),
      ]),
      ...(Object.keys(seen).length === 0 ? ["nothing was tried"] : []),
    ],
  }),
];
