import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { all } from "../../test/support/remote-stations.ts";
import type { RemoteStation } from "../client/remote/remote-station.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { SecretConfig } from "../contract/network/network.ts";
import type { StartRunInput } from "../contract/run/run-verbs.ts";
import { parseSandboxConfig } from "../sandbox/sandbox-config.ts";
import type { Station } from "../verbs/station.ts";
import type { Caller } from "./caller.ts";
import { clientSideStation } from "./client-side-station.ts";
import type { InProcessStation } from "./in-process-station.ts";
import { loadConfig } from "./load-config.ts";
import { stationAt, stationAtSocket } from "./remote.ts";

const { server, station, token, base } = useServer();
const hosts = { hosts: ["api.example.com"], ports: [443] };
const sources: Record<string, SecretConfig["from"]> = {
  variable: "env",
  "another variable": { env: "OTHER" },
  command: { command: ["cat", "token"] },
  file: { file: "/run/tokens/ada" },
};

/** A caller with its own folders and this configuration. */
async function caller(config: object = {}, say: (text: string) => void = () => {}): Promise<Caller> {
  const own = join(base(), "caller");
  const [stateDir, configDir, cwd] = ["state", "config", "work"].map((name) => join(own, name)) as [string, string, string];
  for (const folder of [stateDir, configDir, cwd]) await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(stateDir, "config.json"), JSON.stringify(config), { mode: 0o600 });
  const loaded = await loadConfig({ stateDir, configDir, variable: () => undefined });
  return { cwd, home: own, path: "", configDir, configFile: loaded.file, config: loaded.config, stateDir, say };
}

/** Returns who did the work: the station, or this process. */
async function whoDoes(work: (station: Station) => Promise<unknown>, options: { isElsewhere: boolean; config?: object }): Promise<string> {
  const workers: string[] = [];
  const noting = (who: string) => {
    const note = async () => {
      workers.push(who);
      return { run: "run_aaaaaaaaaaaa", seq: 0 };
    };
    return { sandboxes: { create: note }, runs: { start: note } };
  };
  const here = async () => ({ station: noting("this process") }) as unknown as InProcessStation;
  const remote = noting("the station") as unknown as RemoteStation;
  await work(clientSideStation(remote, { here, caller: await caller(options.config), isElsewhere: options.isElsewhere }).station);
  return workers.join();
}

describe.each<[string, (station: Station, secrets: Record<string, SecretConfig>, secretNames?: string[]) => Promise<unknown>]>([
  ["a sandbox", ({ sandboxes }, secrets, secretNames = []) => sandboxes.create({ spec: parseSandboxConfig({ secrets }), secretNames })],
  ["a run", ({ runs }, secrets, secretNames = []) => runs.start({ task: "x", settings: { secrets, secretNames } })],
])("%s with a secret", (_, make) => {
  test.each(Object.keys(sources))("from a %s of this machine is refused by a remote station, with a hint", async (from) => {
    const secrets = { TOKEN: { from: sources[from], ...hosts } as SecretConfig };
    await expect(whoDoes((reached) => make(reached, secrets), { isElsewhere: true })).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("TOKEN"),
      hint: expect.stringContaining("caisson secret set TOKEN@HOST"),
    });
  });

  test.each(Object.keys(sources))("from a %s is created by the process that has the value", async (from) => {
    const secrets = { TOKEN: { from: sources[from], ...hosts } as SecretConfig };
    const who = from === "file" ? "the station" : "this process";
    expect(await whoDoes((reached) => make(reached, secrets), { isElsewhere: false })).toBe(who);
  });

  test("given by name goes to the station, unless it is configured from the environment", async () => {
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
])("a run is %s by the process that has its model's key", async (_, go) => {
  const lacksKey = async () => {
    throw new CaissonError("unauthenticated", "there is no key");
  };
  const starts: string[] = [];
  const begin = async () => ({ run: starts.push("here"), seq: 0 });
  const remote = { runs: { start: lacksKey, resume: lacksKey, continue: lacksKey } } as unknown as RemoteStation;
  const here = async () => ({ station: { runs: { start: begin, resume: begin, continue: begin } } }) as unknown as InProcessStation;
  const own = await caller();
  await go(clientSideStation(remote, { here, caller: own, isElsewhere: false }).station);
  expect(starts).toEqual(["here"]);
  await expect(go(clientSideStation(remote, { here, caller: own, isElsewhere: true }).station)).rejects.toMatchObject({
    code: "unauthenticated",
  });
});

test("reports a run's notices once, and only to its starter", async () => {
  const notices: string[] = [];
  const here = () => Promise.reject(new Error("nothing is done here"));
  const own = await caller({}, (text) => notices.push(text));
  const reach = () => clientSideStation(stationAtSocket(server().socketPath), { here, caller: own, isElsewhere: false }).station;
  await writeFile(join(own.cwd, ".env"), "TOKEN=x\n");
  await writeFile(join(base(), "model.yaml"), "turns: [{ say: All done. }]\n");
  const { runs } = reach();
  const source = { kind: "folder", path: own.cwd, hiding: {} } as const;
  const { run } = await runs.start({ task: "x", model: `scripted:${join(base(), "model.yaml")}`, source });
  await runs.wait(run);
  await all(runs.events(run));
  await all(runs.events(run));
  await all(reach().runs.events(run));
  expect(notices).toEqual([expect.stringMatching(/^1 file that looks like a credential is (hidden|visible) inside.*\.env/)]);
});

describe("an agent file of the caller", () => {
  async function reached(): Promise<Station> {
    const remote = await stationAt({ kind: "elsewhere", url: server().status.url, context: null }, { token: await token("admin") });
    const here = () => Promise.reject(new Error("nothing is done here"));
    return clientSideStation(remote, { here, caller: await caller(), isElsewhere: true }).station;
  }
  async function start(agent: string, over: Partial<StartRunInput> = {}) {
    await mkdir(join(base(), "caller", "config", "agents"), { recursive: true });
    await writeFile(join(base(), "caller", "config", "agents", "own.prompt"), agent);
    await writeFile(join(base(), "model.yaml"), "turns: [{ say: All done. }]\n");
    const { runs } = await reached();
    const { run } = await runs.start({ task: "x", agent: "own", model: `scripted:${join(base(), "model.yaml")}`, ...over });
    return run;
  }

  test("can use a secret of the remote station", async () => {
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

  test("creates no run if its secret is missing", async () => {
    const agent = "---\nsandbox: { secrets: [OTHER] }\n---\nYou work.\n";
    await expect(start(agent)).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining("caisson secret set") });
    expect((await station().runs.list()).runs).toEqual([]);
  });
});
