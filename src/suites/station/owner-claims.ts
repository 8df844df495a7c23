import { paths } from "../../contract/api/paths.ts";
import type { Route } from "../../contract/api/route.ts";
import { routes } from "../../contract/api/routes.ts";
import { type Answer, ask, json } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

interface Call {
  name: string;
  method: string;
  path: string;
  scope: Route["scope"];
}

/** An id of each kind that no station ever gave away. */
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
  spec: "spec_",
};

/** Every call of the table, with ids of nothing in its path. */
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

/** Whose things a caller can reach, and with which scope. */
export const ownerClaims: StationClaim[] = [
  defineStationClaim<{ tried: number; admitted: string[] }>({
    id: "O01",
    title: "No call works without a token",
    group: "owners",
    tried: "Made every call of the API without a token, and with one that was never given away.",
    async observe(context) {
      const admitted: string[] = [];
      for (const call of calls.filter(({ name }) => !OPEN.has(name))) {
        for (const token of [undefined, `tok_${ABSENT}_${"a".repeat(52)}`]) {
          const { path, given } = callOf(call, token);
          const { status } = await ask(context, path, given);
          if (status !== 401 && status !== 429) admitted.push(`${call.name}: ${status}`);
        }
      }
      return { tried: calls.length, admitted };
    },
    judge: ({ tried, admitted }) => [...admitted, ...(tried === 0 ? ["no call was tried"] : [])],
    describe: ({ tried }) => `${tried} calls, all refused with 401 or 429`,
  }),
  defineStationClaim<{ tried: number; admitted: string[] }>({
    id: "O02",
    title: "A token does no more than its scope",
    group: "owners",
    tried: "Made every call that needs `admin` with a token for `run`, and every call that needs `run` with one for `read`.",
    async observe(context) {
      const { token: eye } = await context.station.token({ scope: "read", owner: "bob" });
      const admitted: string[] = [];
      const beyond = calls.filter(({ scope }) => scope === "admin" || scope === "run");
      for (const call of beyond) {
        const { path, given } = callOf(call, call.scope === "admin" ? context.ada : eye);
        const { status } = await ask(context, path, given);
        if (status !== 403) admitted.push(`${call.name}: ${status}`);
      }
      return { tried: beyond.length, admitted };
    },
    judge: ({ tried, admitted }) => [...admitted, ...(tried === 0 ? ["no call was tried"] : [])],
    describe: ({ tried }) => `${tried} calls, all refused with 403`,
  }),
  defineStationClaim<{ made: string[]; differences: string[]; listed: string[] }>({
    id: "O03",
    title: "Another owner's things look like things that do not exist",
    group: "owners",
    tried: "As one owner made a workflow, a webhook and a secret; as another looked for each, tried to change it, and listed all.",
    observe: observeForeignThings,
    judge: ({ made, differences, listed }) => [
      ...differences,
      ...listed.map((kind) => `${kind} of another owner is listed`),
      ...(made.length < 3 ? [`only ${made.join(", ")} could be made`] : []),
    ],
    describe: ({ made }) => `${made.join(", ")}: answered like what is missing, and in no list`,
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
  const made = things.filter(({ id }) => id !== "");
  const differences: string[] = [];
  for (const { kind, at, id, absent, methods } of made) {
    for (const method of methods) {
      const given = { method, token: bob };
      const [theirs, missing] = [await ask(context, at + id, given), await ask(context, at + absent, given)];
      if (shape(theirs, id) !== shape(missing, absent))
        differences.push(`${method} of a ${kind}: ${theirs.status} instead of ${missing.status}`);
    }
  }
  const listed: string[] = [];
  for (const kind of ["workflow", "webhook", "secret"]) {
    const { text } = await ask(context, `/v1/${kind}s`, { token: bob });
    if (/attack.owned/i.test(text)) listed.push(kind);
  }
  return { made: made.map(({ kind }) => kind), differences, listed };
}

const shape = ({ status, text }: Answer, id: string): string => `${status} ${text.replaceAll(id, "ID")}`;
