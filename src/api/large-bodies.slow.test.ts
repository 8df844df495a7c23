import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";

const { token, ask, post, defects } = useServer();

const validate = (body: string, as: string) =>
  ask("/v1/workflows/validate", { as, method: "POST", body, headers: { "content-type": "application/json" } });

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** Measures the most processor time of one event-loop turn in this thread, including the caller's. */
async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isDone = false;
  let last = cpuMs();
  const watching = new Promise<void>((over) => {
    const look = () => {
      longest = Math.max(longest, cpuMs() - last);
      last = cpuMs();
      if (isDone) over();
      else setImmediate(look);
    };
    setImmediate(look);
  });
  await work();
  isDone = true;
  await watching;
  return longest;
}

/** A bound that scales with the time this machine takes to parse the text, the minimum cost of a body. */
function boundMs(text: string): number {
  const since = cpuMs();
  JSON.parse(text);
  return 100 + 4 * (cpuMs() - since);
}

const steps = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    kind: "command",
    name: `step${index}`,
    argv: ["sh", "-c", `echo \${{ input.a + ${index} }} ${"x".repeat(700)}`],
    when: `input.a == ${index} && input.b.size() > 3`,
  }));

const mib = (unit: string) =>
  `[${Array(Math.floor((1024 * 1024 - 100) / (unit.length + 1)))
    .fill(unit)
    .join(",")}]`;

test.each([
  ["a workflow of 1,000 steps", () => JSON.stringify({ definition: { name: "long", steps: steps(1000) } }), 200],
  [
    "a workflow with unknown settings",
    () => JSON.stringify({ definition: { name: "x", steps: [Object.fromEntries(steps(1000).map(({ name }) => [name, 1]))] } }),
    200,
  ],
  ["numbers for a definition", () => `{"definition":${mib("0")}}`, 400],
  ["empty lists for a definition", () => `{"definition":${mib("[]")}}`, 400],
  [
    "many keys",
    () => JSON.stringify({ definition: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`key${index}`, 0])) }),
    200,
  ],
])("a body with %s does not block the event loop", async (_, body, status) => {
  const as = await token("run", { owner: "ada" });
  const text = body();
  const send = async () => {
    const answer = await validate(text, as);
    await answer.text();
    return answer.status;
  };
  // The first call loads modules that the others need.
  await post("/v1/workflows/validate", { definition: { name: "x", steps: [] } }, { as });
  const found: number[] = [];
  expect(await longestTurnMs(async () => found.push(await send()))).toBeLessThan(boundMs(text));
  expect(found).toEqual([status]);
  expect(defects).toEqual([]);
});

test("a key named after the prototype changes nothing", async () => {
  const as = await token("run", { owner: "ada" });
  const answer = await validate('{"definition":{"__proto__":{"name":"x"},"constructor":1,"steps":[]}}', as);
  expect([answer.status, ({} as { name?: string }).name]).toEqual([200, undefined]);
  expect(((await answer.json()) as { problems: unknown[] }).problems).not.toEqual([]);
});

test("an agent has at most 500 permission rules", async () => {
  const as = await token("run", { owner: "ada" });
  const permissions = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`bash:program${index}*`, "allow"]));
  const answer = await post("/v1/runs", { task: "x", agent: { name: "a", system: "s", permissions } }, { as });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain("more than 500 keys");
});
