import { expect, test } from "vitest";
import { AgentDefinition } from "../../contract/agent/agent.ts";
import { subAgentsOf, withSubAgents } from "./sub-agents.ts";

const define = (name: string, agents: string[] = []) => AgentDefinition.parse({ name, system: "", agents });

test("includes each reachable agent once, even if agents name each other", async () => {
  const lookups: string[] = [];
  const all = { b: define("b", ["c", "a"]), c: define("c", ["b"]), a: define("a", ["b"]) };
  const find = async (name: string) => {
    lookups.push(name);
    return all[name as keyof typeof all];
  };
  const definition = await withSubAgents(all.a, find);
  expect(lookups).toEqual(["b", "c", "a"]);
  expect(subAgentsOf(definition).map(({ name }) => name)).toEqual(["b"]);
  // A sub-run finds its sub-agents in its own definition, and so on.
  const [b] = subAgentsOf(definition);
  expect(subAgentsOf(b as AgentDefinition).map(({ name }) => name)).toEqual(["c", "a"]);
  expect(await withSubAgents(AgentDefinition.parse(JSON.parse(JSON.stringify(definition))), find)).toEqual(definition);
  expect(lookups).toHaveLength(3);
});

test("rejects an agent that leads to an endless number of others", async () => {
  let count = 0;
  await expect(withSubAgents(define("a", ["n"]), async () => define("x", [`n${count++}`]))).rejects.toMatchObject({ code: "too_large" });
  expect(count).toBeLessThan(200);
});
