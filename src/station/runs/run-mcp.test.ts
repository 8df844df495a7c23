import { expect, test } from "vitest";
import { createTestStation } from "../../../test/support/testing-runs.ts";
import { createScriptedModel } from "../../agent/model/scripted-model.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { Program, ProgramIo } from "../../runtimes/fake/program.ts";

const never = new AbortController().signal;
const of = <Type extends RunEvent["type"]>(events: readonly RunEvent[], type: Type) =>
  events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);

async function* linesOf(io: ProgramIo): AsyncGenerator<{ id?: number; method: string }> {
  let text = "";
  for (let data = await io.read(); data !== null; data = await io.read()) {
    text += Buffer.from(data).toString("utf8");
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line);
  }
}

/** An MCP server whose only tool pays, and takes its time to answer. */
function payServer(paid: string[]): Program {
  return async (io) => {
    const answer = (id: number | undefined, result: object) => io.stdout(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
    for await (const { id, method } of linesOf(io)) {
      if (method === "initialize") {
        await answer(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" } });
      } else if (method === "tools/list") {
        await answer(id, { tools: [{ name: "pay", inputSchema: { type: "object" } }] });
      } else if (method === "tools/call") {
        paid.push("paid");
        await io.sleep(600_000);
        await answer(id, { content: [{ type: "text", text: "paid" }] });
      }
    }
    return 0;
  };
}

const mcp = (command: string) => ({ mcp: { bank: { command, args: [], env: {} } } });

test("does not repeat a call that may have happened; ends earlier drivers' servers", async () => {
  const paid: string[] = [];
  const scripted = createScriptedModel({
    turns: [{ calls: [{ tool: "bank__pay" }] }, { say: "I looked.", expect: { news: ["was not repeated", "Check what"] } }],
  });
  const serving: string[][] = [];
  await using station = await createTestStation({
    programs: { "pay-server": payServer(paid) },
    script: {
      ...scripted,
      async *stream(...args) {
        const sandbox = await station.runtime.open((await station.runtime.list())[0]?.id ?? "");
        serving.push((await sandbox.processes()).flatMap(({ ref, state }) => (ref !== null && state === "running" ? [ref] : [])));
        yield* scripted.stream(...args);
      },
    },
  });
  const run = await station.start({ definition: mcp("pay-server") });
  const releaseController = new AbortController();
  const first = station.runs.drive(run, { signal: releaseController.signal }).catch(() => undefined);
  await station.until(run, "tool.started");
  await expect.poll(() => paid).toEqual(["paid"]);
  releaseController.abort();
  await first;
  const sandbox = await station.runtime.open((await station.runtime.list())[0]?.id ?? "");
  // A server left behind by a driver that was killed.
  const left = await sandbox.spawn({ argv: ["pay-server"], ref: `${run}:mcp:bank:1:9`, stdin: "pipe" });
  left.discardOutput();
  const state = await station.second().drive(run, { signal: never });
  expect(state.ended).toEqual({ reason: "done", text: "I looked." });
  expect(paid).toEqual(["paid"]);
  expect(of(await station.events(run), "tool.ended").map((event) => event.data.outcome)).toEqual(["lost"]);
  const connected = of(await station.events(run), "mcp.connected").map(({ data: { server, tools } }) => ({ server, tools }));
  expect(connected).toEqual([
    { server: "bank", tools: ["bank__pay"] },
    { server: "bank", tools: ["bank__pay"] },
  ]);
  expect(serving).toEqual([[`${run}:mcp:bank:1:1`], [`${run}:mcp:bank:2:1`]]);
});

test("ends the run with the server's output if it fails to start, without a sandbox", async () => {
  await using station = await createTestStation({
    programs: {
      refusing: async (io) => {
        await io.stderr("no such folder: /nowhere\n");
        return 1;
      },
    },
    script: { turns: [{ say: "never" }] },
  });
  const { state } = await station.finish({ definition: mcp("refusing") });
  expect(state.ended).toMatchObject({
    reason: "error",
    text: expect.stringMatching(/bank did not start: [\s\S]*no such folder: \/nowhere/),
  });
  expect(await station.runtime.list()).toEqual([]);
});
