import type { Route } from "../../verbs/route.ts";
import { routes } from "../../verbs/routes.ts";
import { paths } from "../../verbs/verb-facts.ts";
import { type Answer, ask, json } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

interface Call {
  name: string;
  method: string;
  path: string;
  scope: Route["scope"];
}

/** The random part of an id that no station ever issued. */
const ABSENT = "zzzzzzzzzzzz";
const prefixes: Readonly<Record<string, string>> = {
  run: "run_",
  sandbox: "sb_",
  session: "ses_",
  workflow: "wf_",
  token: "tok_",
  upload: "up_",
  webhook: "wh_",
  ship: "ship_",
  merge: "mrg_",
  best: "best_",
  spec: "spec_",
};

/** Every route, with nonexistent ids in its path. */
const calls: readonly Call[] = Object.entries(paths).map(([name, at]) => {
  const [method = "", path = ""] = at.split(" ");
  const filled = path.replace(/\{(\w+)\}/g, (_, param: string) => `${prefixes[param] ?? ""}${ABSENT}`);
  return { name, method, path: filled, scope: (routes as Readonly<Record<string, Route>>)[name]?.scope ?? "admin" };
});

const OPEN = new Set(["station.openapi"]);
const callOf = ({ method, path }: Call, token?: string) => ({
  path,
  given: { method, ...(token === undefined ? {} : { token }), ...(method === "GET" || method === "DELETE" ? {} : { body: {} }) },
});

/** Attacks on ownership and scopes. */
export const ownerClaims: StationClaim[] = [
  defineStationClaim<{ tried: number; admitted: string[] }>({
    id: "O01",
    title: "No call works without a token",
    group: "owners",
    tried: "Made every API call without a token, and with a token that was never issued.",
    async observe(context) {
      const admitted: string[] = [];
      for (const call of calls.filter(({ name }) => !OPEN.has(name))) {
        for (const token of [undefined, `tok_${ABSENT}_${"a".repeat(52)}`]) {
          const { path, given: options } = callOf(call, token);
          const { status } = await ask(context, path, options);
          if (status !== 401 && status !== 429) admitted.push(`${call.name}: ${status}`);
        }
      }
      return { tried: calls.length, admitted };
    },
    judge: ({ tried, admitted }) => [...admitted, ...(tried === 0 ? ["no call was tried"] : [])],
    describe: ({ tried }) => `${tried} calls, all rejected with 401 or 429`,
  }),
  defineStationClaim<{ tried: number; admitted: string[] }>({
    id: "O02",
    title: "A token cannot exceed its scope",
    group: "owners",
    tried: "Made every call that needs `admin` with a `run` token, and every call that needs `run` with a `read` token.",
    async observe(context) {
      const { token: eye } = await context.station.token({ scope: "read", owner: "bob" });
      const admitted: string[] = [];
      const beyond = calls.filter(({ scope }) => scope === "admin" || scope === "run");
      for (const call of beyond) {
        const { path, given: options } = callOf(call, call.scope === "admin" ? context.ada : eye);
        const { status } = await ask(context, path, options);
        if (status !== 403) admitted.push(`${call.name}: ${status}`);
      }
      return { tried: beyond.length, admitted };
    },
    judge: ({ tried, admitted }) => [...admitted, ...(tried === 0 ? ["no call was tried"] : [])],
    describe: ({ tried }) => `${tried} calls, all rejected with 403`,
  }),
  defineStationClaim<{ made: string[]; differences: string[]; listed: string[] }>({
    id: "O03",
    title: "Another owner's resources look like missing ones",
    group: "owners",
    tried: "Created a workflow, a webhook and a secret as one owner; as another, looked for each, tried to change it, and listed all.",
    observe: observeForeignThings,
    judge: ({ made: kinds, differences, listed }) => [
      ...differences,
      ...listed.map((kind) => `another owner's ${kind} is listed`),
      ...(kinds.length < 3 ? [`only ${kinds.join(", ")} could be created`] : []),
    ],
    describe: ({ made: kinds }) => `${kinds.join(", ")}: answered like missing ones, and in no list`,
  }),
];

async function observeForeignThings(context: StationContext) {
  const { ada, bob } = context;
  const definition = { name: "attack-owned", steps: [{ name: "a", kind: "set", data: { x: 1 } }] };
  const workflow = json((await ask(context, "/v1/workflows", { token: ada, body: { definition } })).text);
  const webhook = json(
    (await ask(context, "/v1/webhooks", { token: ada, body: { name: "attack-owned", url: "https://example.com/x" } })).text,
  );
  const secret = await ask(context, "/v1/secrets/ATTACK_OWNED", {
    method: "PUT",
    token: ada,
    body: { value: "owned-by-somebody-else", hosts: ["example.com"] },
  });
  const things = [
    { kind: "workflow", at: "/v1/workflows/", id: String(workflow.id ?? ""), absent: `wf_${ABSENT}`, methods: ["GET", "DELETE"] },
    { kind: "webhook", at: "/v1/webhooks/", id: String(webhook.id ?? ""), absent: `wh_${ABSENT}`, methods: ["GET", "DELETE"] },
    { kind: "secret", at: "/v1/secrets/", id: secret.status < 300 ? "ATTACK_OWNED" : "", absent: "ATTACK_ABSENT", methods: ["DELETE"] },
  ];
  const createdThings = things.filter(({ id }) => id !== "");
  const differences: string[] = [];
  for (const { kind, at, id, absent, methods } of createdThings) {
    for (const method of methods) {
      const options = { method, token: bob };
      const [theirs, missing] = [await ask(context, at + id, options), await ask(context, at + absent, options)];
      if (shape(theirs, id) !== shape(missing, absent))
        differences.push(`${method} of a ${kind}: ${theirs.status} instead of ${missing.status}`);
    }
  }
  const listed: string[] = [];
  for (const kind of ["workflow", "webhook", "secret"]) {
    const { text } = await ask(context, `/v1/${kind}s`, { token: bob });
    if (/attack.owned/i.test(text)) listed.push(kind);
  }
  return { made: createdThings.map(({ kind }) => kind), differences, listed };
}

const shape = ({ status, text }: Answer, id: string): string => `${status} ${text.replaceAll(id, "ID")}`;
