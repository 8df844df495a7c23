import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import type { RunEvent } from "../../src/contract/run/run-event.ts";
import type { WorkspaceSource } from "../../src/contract/session/session.ts";
import type { Going, useRunsCli } from "./runs-cli.ts";

export const long = { timeout: 300_000 };

interface Served {
  going: Going;
  client: Client;
  home: string;
}

export type Turn = Script["turns"][number];
export const shell = (command: string): Turn => ({ calls: [{ tool: "bash", arguments: { command, timeout_ms: 280_000 } }] });
/** Turns that do nearly the same with nearly the same result, without two equal calls. */
export const circles = (from: number, count: number): Turn[] =>
  Array.from({ length: count }, (_, at) => shell(`test -e /nowhere/${from + at} || echo attempt ${from + at}: still not there`));
/**
 * Holds the run until the test opens the gate. The gate is outside the workspace, whose files the guardian examines.
 */
export const gate = (name: string): Turn => shell(`while [ ! -e /tmp/${name} ]; do sleep 0.1; done`);
export const write = (path: string): Turn => ({ calls: [{ tool: "write", arguments: { path, content: "progress" } }] });
export const done: Turn = { say: "Done (this model is scripted)." };

/** Starts stations with a guardian, and scripted runs for it to watch. */
export function guardedStations(cli: ReturnType<typeof useRunsCli>) {
  /** The default configuration, with a minimum age that scripted runs reach. */
  async function newHome(name: string, guardian: object = {}, station: object = {}): Promise<string> {
    const home = join(cli.base(), `home-${name}`);
    await mkdir(home, { recursive: true, mode: 0o700 });
    const settings = { stepsMin: 2, workedMsMin: 0, repetitions: 4, ...guardian };
    await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci", guardian: settings, station }));
    return home;
  }

  async function serve(home: string, env: Record<string, string> = {}): Promise<Served> {
    const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home, env });
    await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
    return { going, home, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
  }

  async function over({ going, home }: Served): Promise<void> {
    await cli.run(["down"], { home });
    await going.ended;
    expect(cli.sandboxes(home)).toEqual([]);
  }

  async function begin({ client }: Served, turns: Turn[], settings: object = {}, more: { task?: string; source?: WorkspaceSource } = {}) {
    const model = await cli.script({ about: "a scripted model that runs in circles", turns });
    const { run } = await client.runs.start({
      task: "Make the parser's tests pass",
      model,
      settings: { onAsk: "wait", maxSteps: 200, ...settings },
      ...more,
    });
    return run;
  }

  return { newHome, serve, over, begin };
}

/** Resolves with the first event of this type, past or future. */
export async function until<Type extends RunEvent["type"]>(
  { client }: Served,
  run: string,
  type: Type,
  nth = 1,
): Promise<Extract<RunEvent, { type: Type }>> {
  let seen = 0;
  for await (const event of client.runs.events(run, { follow: true })) {
    if (event.type !== type) continue;
    seen += 1;
    if (seen === nth) return event as never;
  }
  throw new Error(`${run} ended without ${nth} ${type}`);
}

export async function open(served: Served, run: string, name: string): Promise<void> {
  const { data } = await until(served, run, "run.sandboxed");
  await served.client.sandboxes.exec(data.sandbox, { argv: ["touch", `/tmp/${name}`] });
}

export async function eventsOf({ client }: Served, run: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of client.runs.events(run)) events.push(event);
  return events;
}

export const ofGuardian = (events: readonly RunEvent[]) => events.filter(({ type }) => type.startsWith("guardian."));
