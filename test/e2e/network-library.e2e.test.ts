import { join } from "node:path";
import { expect, test } from "vitest";
import { filesWith, textWith } from "../support/network/canary.ts";
import { useMachine } from "../support/network/run-in.ts";

const machine = useMachine();

test("library sandboxes apply network rules, and an empty list allows nothing (N10)", async () => {
  const { canary, world } = machine.internet;
  const program = join(import.meta.dirname, "../support/network/library-program.ts");
  const { code, stdout, stderr } = await machine.program([process.execPath, program, machine.home], { env: { RIG_CANARY: canary } });
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    empty: ["403", "000"],
    before: ["200", "403"],
    fetch: [200, "host_not_allowed"],
    after: "403",
    heard: ["network.changed", "network.closed", "network.denied", "secret.used"],
    told: ["network.changed", "network.closed", "network.denied", "secret.used"],
  });
  const { requests } = await world.seen({ take: true });
  expect(requests.map(({ path, headers }) => [path, headers["x-key"]])).toEqual([
    ["/open/a", canary],
    ["/open/b", undefined],
  ]);
  expect(textWith(stdout + stderr, canary)).toEqual([]);
  expect(filesWith(machine.home, canary)).toEqual([]);
  expect(machine.sandboxes()).toEqual([]);
});
