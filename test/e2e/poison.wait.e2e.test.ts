import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import { type Going, useRunsCli } from "../support/runs-cli.ts";
import { until } from "./caisson-process.ts";

const cli = useRunsCli();

async function serve(home: string, crashAt?: string): Promise<{ going: Going; client: Client }> {
  const env = crashAt === undefined ? {} : { CAISSON_CRASH_AT: crashAt };
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home, env });
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

async function kill({ going }: { going: Going }): Promise<void> {
  const exit = once(going.child, "exit");
  going.child.kill("SIGKILL");
  await exit;
}

const definition = { name: "flow", steps: [{ name: "a", kind: "set" as const, data: { x: 1 } }] };

test("a workflow that blocked the event loop of a killed station is paused, and asks", async () => {
  const home = join(cli.base(), "poisoned");
  await mkdir(home, { mode: 0o700 });
  const first = await serve(home, "hold workflow#1");
  // The workflow blocks the loop before the response is sent, or right after.
  void first.client.workflows.start({ definition }).catch(() => undefined);
  await until("the watching thread sees it", () => existsSync(join(home, "station", "turn.stuck")));
  await kill(first);

  const second = await serve(home);
  const { items } = await second.client.workflows.list();
  const [workflow] = items;
  expect(workflow).toMatchObject({ status: "paused", paused: { by: "station", text: expect.stringContaining("stopped answering") } });
  const inbox = await second.client.inbox.list();
  expect(inbox.items).toEqual([expect.objectContaining({ of: { kind: "workflow", id: workflow?.id }, asks: "failure" })]);
  expect((await cli.run(["inbox"], { home })).text).toContain(`caisson workflow resume ${workflow?.id}`);

  await second.client.workflows.resume(workflow?.id ?? "");
  expect(await second.client.workflows.wait(workflow?.id ?? "")).toMatchObject({ finish: "completed" });
  expect((await second.client.inbox.list()).items).toEqual([]);

  // A station that is killed at any other moment blames no workflow.
  const { id } = await second.client.workflows.start({
    definition: { name: "waits", steps: [{ name: "a", kind: "timer", for: "2s" }] },
  });
  await kill(second);
  const third = await serve(home);
  expect(await third.client.workflows.wait(id)).toMatchObject({ finish: "completed" });
  expect((await cli.run(["down"], { home })).code).toBe(0);
});
