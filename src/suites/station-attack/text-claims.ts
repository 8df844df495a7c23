import { setTimeout as delay } from "node:timers/promises";
import { ask, healthDuring, json } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

interface Responsive {
  slowestMs: number;
  unanswered: number;
  /** The outcome of each request. */
  outcomes: Record<string, string>;
}

/** The limit for one answer under load; a blocked event loop exceeds it. */
const SLOWEST_MS_MAX = 5_000;
const judgeResponsive = ({ slowestMs, unanswered, outcomes }: Responsive): string[] => [
  ...(unanswered > 0 ? [`${unanswered} health checks got no answer`] : []),
  ...(slowestMs > SLOWEST_MS_MAX ? [`an answer took ${slowestMs} ms`] : []),
  ...Object.entries(outcomes).flatMap(([what, outcome]) => (outcome === "completed" ? [`${what} ran to completion`] : [])),
  ...(Object.keys(outcomes).length === 0 ? ["nothing was tried"] : []),
];
const describeResponsive = ({ slowestMs, outcomes }: Responsive): string =>
  `the slowest health check took ${slowestMs} ms; ${Object.entries(outcomes)
    .map(([what, outcome]) => `${what}: ${outcome}`)
    .join(", ")}`;

const EXPRESSIONS: Readonly<Record<string, { when: string; input: object }>> = {
  "four nested loops": {
    when: "input.l.all(a, input.l.all(b, input.l.all(c, input.l.all(d, a >= 0))))",
    input: { l: [...Array(900).keys()] },
  },
  "an expression that backtracks": { when: 'input.s.matches("^(a+)+$")', input: { s: `${"a".repeat(60)}!` } },
  "a text that doubles": {
    when: "input.l.map(a, input.s + input.s + input.s).size() > 0",
    input: { l: [...Array(900).keys()], s: "x".repeat(20_000) },
  },
};

/** Attempts to overload the station with a caller's text. */
export const textClaims: StationClaim[] = [
  defineStationClaim<Responsive>({
    id: "T01",
    title: "No workflow expression blocks the station",
    group: "text",
    tried: "Started workflows whose conditions take hours, and polled the station's health at the same time.",
    observe: observeExpressions,
    judge: ({ outcomes, ...rest }) =>
      judgeResponsive({
        ...rest,
        // A workflow that is merely large may finish within its budget.
        outcomes: Object.fromEntries(Object.entries(outcomes).map(([what, outcome]) => [what, what.includes("doubles") ? "" : outcome])),
      }),
    describe: describeResponsive,
  }),
  defineStationClaim<Responsive>({
    id: "T02",
    title: "No pattern, filter or long line blocks the station",
    group: "text",
    tried: "Sent patterns of many stars, filters and names that repeat one character, deep JSON, and JSON with names of prototypes.",
    observe: observeLongTexts,
    judge: judgeResponsive,
    describe: describeResponsive,
  }),
];

async function observeExpressions(context: StationContext): Promise<Responsive> {
  const outcomes: Record<string, string> = {};
  const work = async () => {
    for (const [what, { when, input }] of Object.entries(EXPRESSIONS)) {
      const definition = { name: "attack-text", steps: [{ name: "a", kind: "set", when, data: { x: 1 } }] };
      const started = await ask(context, "/v1/workflows", { token: context.ada, body: { definition, input } });
      const { id } = json(started.text);
      outcomes[what] = typeof id === "string" ? await outcomeOf(context, id) : `rejected with ${started.status}`;
    }
  };
  const working = work();
  const health = await healthDuring(context, working);
  await working;
  return { ...health, outcomes };
}

/** Returns a workflow's status as soon as it is not running, within a time limit. */
async function outcomeOf(context: StationContext, id: string): Promise<string> {
  const deadline = performance.now() + 12_000;
  let status = "not answered";
  while (performance.now() < deadline) {
    const view = json((await ask(context, `/v1/workflows/${id}`, { token: context.ada })).text);
    status = typeof view.status === "string" ? view.status : status;
    if (status !== "running" && status !== "not answered") break;
    await delay(100);
  }
  await ask(context, `/v1/workflows/${id}/cancel`, { token: context.ada, body: {} });
  return status;
}

async function observeLongTexts(context: StationContext): Promise<Responsive> {
  const outcomes: Record<string, string> = {};
  const { ada: token } = context;
  const long = "a".repeat(500_000);
  const bodies: Readonly<Record<string, [path: string, body: unknown]>> = {
    "a pattern of stars": ["/v1/runs", { task: "x", model: "scripted:demo", settings: { mountGuard: { hide: [`${"*a".repeat(40)}*b`] } } }],
    "a long name": ["/v1/runs", { task: "x", model: "scripted:demo", name: long }],
    "a long image": ["/v1/sandboxes", { spec: { template: { kind: "image", reference: `${"a/".repeat(200_000)}:${long}` } } }],
    "a long address": ["/v1/webhooks", { name: "x", url: `https://${"a.".repeat(100_000)}com/` }],
    "deep JSON": ["/v1/workflows/validate", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    "names of prototypes": ["/v1/workflows/validate", '{"definition":{"__proto__":{"steps":[]},"constructor":{"prototype":{"name":"x"}}}}'],
    "spaces at the end": ["/v1/workflows/validate", { definition: { name: `${" ".repeat(400_000)}x`, steps: [] } }],
  };
  const work = async () => {
    for (const [what, [path, body]] of Object.entries(bodies)) {
      const { status, failed } = await ask(context, path, { token, body });
      outcomes[what] = failed ?? String(status);
    }
    for (const query of [`label=${"a%2C".repeat(1500)}`, `text=${"%20".repeat(2000)}x`, `label=${"*".repeat(2000)}`]) {
      const { status, failed } = await ask(context, `/v1/runs?${query}`, { token });
      outcomes[`the filter ${query.slice(0, 12)}…`] = failed ?? String(status);
    }
  };
  const working = work();
  const health = await healthDuring(context, working);
  await working;
  return { ...health, outcomes };
}
