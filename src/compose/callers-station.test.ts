import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../api/testing.ts";
import type { RemoteStation } from "../client/station/remote-station.ts";
import { all } from "../client/station/testing.ts";
import { CaissonError } from "../contract/error.ts";
import type { SecretSpec } from "../contract/network.ts";
import type { StartRunInput } from "../contract/run-verbs.ts";
import { parseSpec } from "../sandbox/spec.ts";
import type { Station } from "../station/station.ts";
import type { Caller } from "./caller.ts";
import { callersStation } from "./callers-station.ts";
import type { StationHere } from "./here.ts";
import { loadConfig } from "./load-config.ts";
import { stationAt, stationAtSocket } from "./remote.ts";

const { server, station, token, base } = useServer();
const hosts = { hosts: ["api.example.com"], ports: [443] };
const sources: Record<string, SecretSpec["from"]> = {
  variable: "env",
  "another variable": { env: "OTHER" },
  command: { command: ["cat", "token"] },
  file: { file: "/run/tokens/ada" },
};

/** Whoever stands in a folder of their own, with this configuration. */
async function caller(config: object = {}, say: (text: string) => void = () => {}): Promise<Caller> {
  const own = join(base(), "caller");
  const [stateDir, configDir, cwd] = ["state", "config", "work"].map((name) => join(own, name)) as [string, string, string];
  for (const folder of [stateDir, configDir, cwd]) await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(stateDir, "config.json"), JSON.stringify(config), { mode: 0o600 });
  const loaded = await loadConfig({ stateDir, configDir, variable: () => undefined });
  return { cwd, home: own, path: "", configDir, configFile: loaded.file, config: loaded.config, stateDir, say };
}

/** Tells who was asked to do it: the station, or this process. */
async function whoDoes(work: (station: Station) => Promise<unknown>, options: { isElsewhere: boolean; config?: object }): Promise<string> {
  const asked: string[] = [];
  const noting = (who: string) => {
    const note = async () => {
      asked.push(who);
      return { run: "run_aaaaaaaaaaaa", seq: 0 };
    };
    return { sandboxes: { create: note }, runs: { start: note } };
  };
  const here = async () => ({ station: noting("this process") }) as unknown as StationHere;
  const remote = noting("the station") as unknown as RemoteStation;
  await work(callersStation(remote, { here, caller: await caller(options.config), isElsewhere: options.isElsewhere }).station);
  return asked.join();
}

describe.each<[string, (station: Station, secrets: Record<string, SecretSpec>, secretNames?: string[]) => Promise<unknown>]>([
  ["a sandbox", ({ sandboxes }, secrets, secretNames = []) => sandboxes.create({ spec: parseSpec({ secrets }), secretNames })],
  ["a run", ({ runs }, secrets, secretNames = []) => runs.start({ task: "x", settings: { secrets, secretNames } })],
])("%s with a secret", (_, make) => {
  test.each(Object.keys(sources))("from a %s of this machine is not made elsewhere, and the way to do it is said", async (from) => {
    const secrets = { TOKEN: { from: sources[from], ...hosts } as SecretSpec };
    await expect(whoDoes((reached) => make(reached, secrets), { isElsewhere: true })).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("TOKEN"),
      hint: expect.stringContaining("caisson secret set TOKEN@HOST"),
    });
  });

  test.each(Object.keys(sources))("from a %s is made by whoever has the value", async (from) => {
    const secrets = { TOKEN: { from: sources[from], ...hosts } as SecretSpec };
    const who = from === "file" ? "the station" : "this process";
    expect(await whoDoes((reached) => make(reached, secrets), { isElsewhere: false })).toBe(who);
  });

  test("that is only named is a station's, unless it is in the environment by the configuration", async () => {
    const named = (reached: Station) => make(reached, {}, ["TOKEN"]);
    expect(await whoDoes(named, { isElsewhere: true })).toBe("the station");
    expect(await whoDoes(named, { isElsewhere: false })).toBe("the station");
    const config = { secrets: { TOKEN: { from: "env", hosts: ["api.example.com"] } } };
    expect(await whoDoes(named, { isElsewhere: false, config })).toBe("this process");
    expect(await whoDoes(named, { isElsewhere: true, config })).toBe("the station");
  });
});

test.each<[string, (station: Station) => Promise<unknown>]>([
  ["started", ({ runs }) => runs.start({ task: "x" })],
  ["resumed", ({ runs }) => runs.resume("run_aaaaaaaaaaaa", { by: "me" })],
  ["continued", ({ runs }) => runs.continue("run_aaaaaaaaaaaa", { text: "x", by: "me" })],
])("a run is %s by whoever has the key of its model", async (_, go) => {
  const lacksKey = async () => {
    throw new CaissonError("unauthenticated", "there is no key");
  };
  const begun: string[] = [];
  const begin = async () => ({ run: begun.push("here"), seq: 0 });
  const remote = { runs: { start: lacksKey, resume: lacksKey, continue: lacksKey } } as unknown as RemoteStation;
  const here = async () => ({ station: { runs: { start: begin, resume: begin, continue: begin } } }) as unknown as StationHere;
  const own = await caller();
  await go(callersStation(remote, { here, caller: own, isElsewhere: false }).station);
  expect(begun).toEqual(["here"]);
  await expect(go(callersStation(remote, { here, caller: own, isElsewhere: true }).station)).rejects.toMatchObject({
    code: "unauthenticated",
  });
});

test("what a station has to say of a run is said to whoever started it, once, and not to others", async () => {
  const said: string[] = [];
  const here = () => Promise.reject(new Error("nothing is done here"));
  const own = await caller({}, (text) => said.push(text));
  const reach = () => callersStation(stationAtSocket(server().socketPath), { here, caller: own, isElsewhere: false }).station;
  await writeFile(join(own.cwd, ".env"), "TOKEN=x\n");
  await writeFile(join(base(), "model.yaml"), "turns: [{ say: All done. }]\n");
  const { runs } = reach();
  const source = { kind: "folder", path: own.cwd, hiding: {} } as const;
  const { run } = await runs.start({ task: "x", model: `scripted:${join(base(), "model.yaml")}`, source });
  await runs.wait(run);
  await all(runs.events(run));
  await all(runs.events(run));
  await all(reach().runs.events(run));
  expect(said).toEqual([expect.stringMatching(/^1 file that looks like a credential is (hidden|visible) inside.*\.env/)]);
});

describe("an agent's file of the caller", () => {
  async function reached(): Promise<Station> {
    const remote = await stationAt({ kind: "elsewhere", url: server().status.url, context: null }, { token: await token("admin") });
    const here = () => Promise.reject(new Error("nothing is done here"));
    return callersStation(remote, { here, caller: await caller(), isElsewhere: true }).station;
  }
  async function start(agent: string, over: Partial<StartRunInput> = {}) {
    await mkdir(join(base(), "caller", "config", "agents"), { recursive: true });
    await writeFile(join(base(), "caller", "config", "agents", "own.prompt"), agent);
    await writeFile(join(base(), "model.yaml"), "turns: [{ say: All done. }]\n");
    const { runs } = await reached();
    const { run } = await runs.start({ task: "x", agent: "own", model: `scripted:${join(base(), "model.yaml")}`, ...over });
    return run;
  }

  test("names a secret that the station elsewhere keeps", async () => {
    await station().secrets.set("TOKEN", { value: "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A", hosts: ["api.example.com"] });
    const agent = "---\nsandbox: { secrets: [TOKEN] }\n---\nYou work.\n";
    for await (const event of station().runs.events(await start(agent))) {
      if (event.type !== "run.created") continue;
      const secrets = { TOKEN: { from: { file: expect.stringContaining(join(base(), "state")) }, hosts: ["api.example.com"] } };
      expect(event.data.agent.definition).toMatchObject({ sandbox: { secrets } });
      return;
    }
    throw new Error("no run was made");
  });

  test("names one that nobody has, and no run is made", async () => {
    const agent = "---\nsandbox: { secrets: [OTHER] }\n---\nYou work.\n";
    await expect(start(agent)).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining("caisson secret set") });
    expect((await station().runs.list()).runs).toEqual([]);
  });
});
