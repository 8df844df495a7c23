import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { ask, json } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

const IMAGES = [
  "/etc",
  "./etc",
  "../etc",
  "oci:/etc",
  "oci:etc",
  "OCI:/etc",
  "oci-archive:/etc/x.tar",
  "docker-archive:/etc/x.tar",
  "dir:/etc",
  "docker-daemon:x:latest",
  "ostree:x@/etc",
  "sif:/etc/x",
  "tarball:/etc/x.tar",
  "file:///etc",
];
const git = (url: string, more: object = {}) => ({ kind: "git", url, ...more });
const SOURCES: Readonly<Record<string, object>> = {
  "a folder": { kind: "folder", path: "/etc" },
  "file://": git("file:///etc"),
  "a path": git("/etc"),
  "ssh://": git("ssh://127.0.0.1/x.git"),
  "ssh in its short form": git("git@127.0.0.1:x.git"),
  "ext::": git("ext::sh -c true"),
  "git://": git("git://127.0.0.1/x.git"),
  "http://": git("http://127.0.0.1/x.git"),
  "submodules on disk": git("https://example.com/x.git", { submodules: true, submodulesFrom: ["file:///"] }),
  "submodules over ssh": git("https://example.com/x.git", { submodules: true, submodulesFrom: ["ssh://127.0.0.1/"] }),
  "a key on the machine": git("https://example.com/x.git", { keyPath: "/etc/ssh/ssh_host_rsa_key" }),
};
const SETTINGS: Readonly<Record<string, object>> = {
  "the host runtime": { runtime: "host" },
  "a program as the OCI runtime": { ociRuntime: "/bin/sh" },
  "a folder as a mount": { mounts: [{ source: "/etc", target: "/mnt/x", access: "ro" }] },
  "a variable of the station": { secrets: { X: { from: { env: "PATH" }, hosts: ["example.com"] } } },
  "a file of the station": { secrets: { X: { from: { file: "/etc/passwd" }, hosts: ["example.com"] } } },
  "private addresses": { network: { mode: "allow", rules: [{ host: "127.0.0.1", private: true }] } },
};
const run = (more: object) => ({ task: "attack", model: "scripted:demo", ...more });

/** Attempts to name things on the station's machine with the scope `run`. */
export const reachClaims: StationClaim[] = [
  defineStationClaim<Record<string, number>>({
    id: "M01",
    title: "A `run` token can name nothing on the machine",
    group: "reach",
    tried:
      "Requested sandboxes, runs and workflows with images in folders and archives, repositories over other protocols than HTTPS, and mounts, programs, variables, agent files and scripts of the machine.",
    async observe(context) {
      const seen: Record<string, number> = {};
      const tryOne = async (what: string, path: string, body: object) => {
        const { status, failed } = await ask(context, path, { token: context.ada, body });
        seen[what] = failed === null ? status : -1;
      };
      for (const reference of IMAGES) {
        await tryOne(`sandbox from ${reference}`, "/v1/sandboxes", { spec: { template: { kind: "image", reference } } });
        await tryOne(`run from ${reference}`, "/v1/runs", run({ settings: { image: reference } }));
      }
      for (const [what, source] of Object.entries(SOURCES)) await tryOne(`run on ${what}`, "/v1/runs", run({ source }));
      for (const [what, settings] of Object.entries(SETTINGS)) await tryOne(`run with ${what}`, "/v1/runs", run({ settings }));
      await tryOne("an agent file", "/v1/runs", run({ agent: "/etc/x.prompt" }));
      await tryOne("a script of the scripted model", "/v1/runs", { task: "attack", model: "scripted:/etc/passwd" });
      await tryOne("a recording", "/v1/runs", run({ record: "/tmp/x" }));
      const agent = { name: "a", steps: [{ name: "s", kind: "agent", agent: "/etc/x.prompt", task: "x" }] };
      await tryOne("an agent file in a workflow", "/v1/workflows", { definition: agent });
      return seen;
    },
    judge: (seen) => [
      ...Object.entries(seen).flatMap(([what, status]) =>
        status === 403 || status === 400 || status === 422 ? [] : [`${what}: ${status}`],
      ),
      ...(Object.keys(seen).length === 0 ? ["nothing was tried"] : []),
    ],
    describe: (seen) => `${Object.keys(seen).length} requests, all rejected`,
  }),
  defineStationClaim<{ status: number; leaked: boolean }>({
    id: "M02",
    title: "Only the machine's user can use the configuration's secrets",
    group: "reach",
    tried: "Requested a sandbox with a secret from the operator's configuration, as another owner.",
    async observe(context) {
      const body = { secretNames: [context.station.operatorSecret], spec: {} };
      const { status, text } = await ask(context, "/v1/sandboxes", { token: context.ada, body, timeoutMs: 30_000 });
      return { status, leaked: text.includes(context.station.operatorValue) };
    },
    judge: ({ status, leaked }) => [
      ...(status >= 400 && status < 500 ? [] : [`it was answered with ${status}`]),
      ...(leaked ? ["its value was in the answer"] : []),
    ],
    describe: ({ status }) => `rejected with ${status}`,
  }),
  defineStationClaim<{ connections: number; tried: number }>({
    id: "M03",
    title: "The station does not connect to private addresses for a caller",
    group: "reach",
    tried: "Pointed repositories, images, webhooks and ships at a listener on the loopback interface, by address and by name.",
    observe: observeInwardConnections,
    judge: ({ connections, tried }) => [
      ...(connections > 0 ? [`${connections} connections arrived`] : []),
      ...(tried === 0 ? ["nothing was tried"] : []),
    ],
    describe: ({ tried }) => `${tried} requests, no connection arrived`,
  }),
];

const SETTLE_MS = 15_000;

async function observeInwardConnections(context: StationContext) {
  let connections = 0;
  const listener = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  let tried = 0;
  const post = async (path: string, body: object) => {
    tried += 1;
    return json((await ask(context, path, { token: context.ada, body, timeoutMs: SETTLE_MS })).text);
  };
  try {
    const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::ffff:127.0.0.1]:${port}`, `2130706433:${port}`, `0x7f.1:${port}`];
    const runs: string[] = [];
    for (const host of hosts) {
      const { run: id } = await post("/v1/runs", run({ source: git(`https://${host}/x.git`) }));
      if (typeof id === "string") runs.push(id);
      await post("/v1/sandboxes", { spec: { template: { kind: "image", reference: `${host}/x/y` } } });
      const { id: webhook } = await post("/v1/webhooks", { name: `attack-${tried}`, url: `https://${host}/x` });
      if (typeof webhook === "string") await post(`/v1/webhooks/${webhook}/test`, {});
    }
    await Promise.all(runs.map((id) => untilEnded(context, id)));
    return { connections, tried };
  } finally {
    await new Promise((resolve) => listener.close(resolve));
  }
}

async function untilEnded(context: StationContext, id: string): Promise<void> {
  const deadline = performance.now() + SETTLE_MS;
  while (performance.now() < deadline) {
    const { finish, status } = json((await ask(context, `/v1/runs/${id}`, { token: context.ada })).text);
    if (finish !== null || status === undefined) return;
    await delay(100);
  }
  await ask(context, `/v1/runs/${id}/stop`, { token: context.ada, body: {} });
}
