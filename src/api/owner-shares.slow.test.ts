import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { createOpenRequests } from "./open-requests.ts";

const { token, post } = useServer({ bounds: { jobsPerOwnerMax: 3 } });

test("limits one owner's webhooks without affecting other owners", async () => {
  const [ada, bob] = [await token("run", { owner: "ada" }), await token("run", { owner: "bob" })];
  const create = async (as: string, name: string) =>
    (await post("/v1/webhooks", { name, url: "https://hooks.example.com/" }, { as })).status;
  for (let each = 0; each < 50; each++) expect(await create(ada, `h${each}`)).toBe(201);
  expect(await create(ada, "more")).toBe(429);
  expect(await create(bob, "first")).toBe(201);
});

test("limits one owner's open workflows without affecting other owners", async () => {
  const [ada, bob] = [await token("run", { owner: "ada" }), await token("run", { owner: "bob" })];
  const definition = { name: "waits", steps: [{ name: "a", kind: "signal", signal: "never" }] };
  const start = (as: string) => post("/v1/workflows", { definition, input: {} }, { as });
  for (let each = 0; each < 3; each++) expect((await start(ada)).status).toBe(201);
  const refused = await start(ada);
  expect([refused.status, await refused.json()]).toMatchObject([429, { hint: expect.stringContaining("jobsPerOwnerMax") }]);
  expect((await start(bob)).status).toBe(201);
});

test("limits one owner's open requests over all tokens", () => {
  const requests = createOpenRequests();
  const signal = new AbortController().signal;
  const begin = (id: string, owner: string) => requests.begin({ disconnected: signal, token: { id, owner } });
  const lives = Array.from({ length: 800 }, (_, n) => begin(`tok_${n % 2}`, "ada"));
  expect(() => begin("tok_2", "ada")).toThrow(expect.objectContaining({ code: "busy", details: { retryAfterSeconds: 5 } }));
  begin("tok_3", "bob").end();
  lives[0]?.end();
  begin("tok_2", "ada");
});
