import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Figures, Row } from "./report.ts";
import type { StationProcess } from "./station-process.ts";

/** The resolution of the measured loop delay. */
const RESOLUTION_MS = 5;
const ROUNDS = 3;
const TEXT_BYTES = 900_000;
const HOLD_MS_MAX = 50;

/** Creates a finished run whose events are large. */
export async function startLargeRun({ client }: StationProcess, folder: string): Promise<string> {
  const model = join(folder, "large.json");
  const say = "Line of a large answer.\n".repeat(TEXT_BYTES / 24);
  await writeFile(model, JSON.stringify({ turns: [...Array(4).fill(largeTurn(say)), { say }] }));
  const { run } = await client.runs.start({ task: "Say much.", model: `scripted:${model}` });
  await client.runs.wait(run);
  return run;
}

/** Measures how long the largest requests and stored values block the station's event loop. */
export async function measureHolds(station: StationProcess, run: string): Promise<Figures> {
  const { client, url, token } = station;
  const { session } = await client.runs.get(run);
  const call = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { ...init, headers });
    // Reads the answer to its end.
    for await (const _ of answer.body ?? []);
    return answer.status;
  };
  const post = (path: string, body: string) => call(path, { method: "POST", body });
  const steps = Array.from({ length: 1_000 }, (_, at) => ({ name: `s${at}`, kind: "set", data: { at } }));
  const things: Record<string, () => Promise<number>> = {
    "a list of 1,000 runs": () => call("/v1/runs?limit=1000"),
    "the queue": () => call("/v1/queue"),
    "a page of large events": () => call(`/v1/runs/${run}/events?limit=1000`),
    "a run whose events are large": () => call(`/v1/runs/${run}`),
    "a large diff": () => call(`/v1/sessions/${session}/diff`),
    "a workflow of 1,000 steps": () => post("/v1/workflows/validate", JSON.stringify({ definition: { name: "large", steps } })),
    "a body of 1 MiB": () => post("/v1/workflows/validate", JSON.stringify({ definition: { name: "x".repeat(2 ** 20 - 100) } })),
    "the OpenAPI document": () => call("/v1/openapi.json"),
    "the metrics": () => call("/metrics"),
    "a backup": () => post("/v1/machine/backup", "{}"),
  };
  const rows: Row[] = [];
  for (const [name, work] of Object.entries(things)) {
    // A refusal would say nothing about the cost, so the note shows the status.
    const status = await work();
    const held: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await station.delay();
      await work();
      held.push(Math.max(0, (await station.delay()).mostMs - RESOLUTION_MS));
    }
    // The minimum: other work on the machine only adds to it.
    rows.push({
      group: "how long one request blocks the event loop",
      name,
      value: Math.min(...held),
      unit: "ms",
      n: ROUNDS,
      note: `status ${status}`,
    });
  }
  const worst = Math.max(...rows.map(({ value }) => value));
  return {
    rows,
    targets: [{ name: "the longest block of the event loop by one request", measured: worst, unit: "ms", atMost: HOLD_MS_MAX }],
  };
}

function largeTurn(say: string): object {
  return { say, calls: [{ tool: "write", arguments: { path: "large.txt", content: say } }] };
}
