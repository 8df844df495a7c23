import { expect, test } from "vitest";
import { AgentDefinition } from "../../contract/agent.ts";
import { subAgentsOf, withSubAgents } from "./sub-agents.ts";

const define = (name: string, agents: string[] = []) => AgentDefinition.parse({ name, system: "", agents });

test("everyone that can be reached is taken along once, also where agents name each other", async () => {
  const asked: string[] = [];
  const all = { b: define("b", ["c", "a"]), c: define("c", ["b"]), a: define("a", ["b"]) };
  const find = async (name: string) => {
    asked.push(name);
    return all[name as keyof typeof all];
  };
  const definition = await withSubAgents(all.a, find);
  expect(asked).toEqual(["b", "c", "a"]);
  expect(subAgentsOf(definition).map(({ name }) => name)).toEqual(["b"]);
  // A sub-run finds its own in what it was given, and so on.
  const [b] = subAgentsOf(definition);
  expect(subAgentsOf(b as AgentDefinition).map(({ name }) => name)).toEqual(["c", "a"]);
  expect(await withSubAgents(AgentDefinition.parse(JSON.parse(JSON.stringify(definition))), find)).toEqual(definition);
  expect(asked).toHaveLength(3);
});

test("an agent that leads to ever more others is refused", async () => {
  let count = 0;
  await expect(withSubAgents(define("a", ["n"]), async () => define("x", [`n${count++}`]))).rejects.toMatchObject({ code: "too_large" });
  expect(count).toBeLessThan(200);
});
