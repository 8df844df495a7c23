import { readFile, readlink } from "node:fs/promises";
import { Readable } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { sentence } from "../../contract/error/sentence.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Finding, Probe } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { guestInside } from "./container-config.ts";
import { createSandbox } from "./create-sandbox.ts";
import type { DockerContext } from "./docker-context.ts";
import type { Engine } from "./engine.ts";
import { capabilitiesOf, type EngineFacts } from "./engine-facts.ts";
import { removeImage } from "./remove-sandbox.ts";
import { archiveOf } from "./small-archive.ts";

/** Namespaces that a sandbox must not share with the host. The engine decides about `user`, which we only report. */
const namespaces = ["pid", "mnt", "net", "ipc", "uts", "cgroup"] as const;

/** Starts a sandbox, runs a command in it and checks its namespaces from inside. Never throws. */
export async function probeEngine(docker: DockerContext): Promise<Probe> {
  const findings: Finding[] = [];
  try {
    const engine = await docker.engine();
    const facts = await engine.facts();
    findings.push(...describeEngine(engine, facts));
    const startMs = await startOne(docker, engine, findings);
    return { usable: !findings.some(({ level }) => level === "problem"), startMs, findings };
  } catch (error) {
    const hint = error instanceof CaissonError ? error.hint : undefined;
    const text = error instanceof Error ? error.message : String(error);
    findings.push({ level: "problem", text: sentence(text), ...(hint === undefined ? {} : { fix: hint }) });
    return { usable: false, startMs: null, findings };
  }
}

function describeEngine(engine: Engine, facts: EngineFacts): Finding[] {
  const name = facts.kind === "podman" ? "Podman" : "Docker";
  const kind = facts.rootless ? "rootless" : facts.remappedRoot !== null ? "with remapped user ids" : "without a user namespace";
  const findings: Finding[] = [
    {
      level: "ok",
      text: `${name} ${facts.version} answers on ${engine.socketPath}, ${kind}, cgroup v${facts.cgroupVersion} (${facts.cgroupDriver}), ${facts.ociRuntime}.`,
    },
    { level: "ok", text: "Points of sessions are images: each stores what its container changed in the turn." },
  ];
  if (facts.kind === "docker" && !facts.rootless && facts.remappedRoot === null) {
    findings.push({
      level: "note",
      text: "User ids inside are the machine's own.",
      fix: 'Put { "userns-remap": "default" } into /etc/docker/daemon.json and restart Docker, or use the oci runtime.',
    });
  }
  const { reasons, limits } = capabilitiesOf(facts, { defaultImage: null });
  for (const limit of ["cpus", "memoryBytes", "pids", "diskBytes"] as const) {
    if (!limits[limit]) findings.push({ level: "note", text: `The limit ${limit} cannot be enforced. ${reasons[limit] ?? ""}`.trim() });
  }
  return findings;
}

async function startOne(docker: DockerContext, engine: Engine, findings: Finding[]): Promise<number> {
  const image = docker.defaultImage ?? (await importGuestImage(docker, engine));
  const began = performance.now();
  let startMs = 0;
  try {
    const config = SandboxConfig.parse({ template: { kind: "image", reference: image } });
    await using sandbox = await createSandbox(docker, { config });
    // The guest is the only program that exists in every image.
    const running = await sandbox.spawn({ argv: [guestInside, "--version"], cwd: "/" });
    running.discardOutput();
    const ended = await running.ended;
    startMs = performance.now() - began;
    if (ended.kind !== "exited" || ended.exitCode !== 0)
      findings.push({ level: "problem", text: `A command inside ended as ${JSON.stringify(ended)}.` });
    findings.push(...(await compareNamespaces(sandbox, await engine.facts())));
    for (const text of sandbox.info.warnings) findings.push({ level: "note", text });
  } finally {
    if (docker.defaultImage === null) await removeImage(engine, image);
  }
  return startMs;
}

async function compareNamespaces(sandbox: OwnedSandbox, facts: EngineFacts): Promise<Finding[]> {
  const shared: string[] = [];
  for (const name of namespaces) {
    const outside = await readlink(`/proc/self/ns/${name}`);
    const inside = (await sandbox.stat(`/proc/self/ns/${name}`, { follow: false })).linkTarget;
    if (inside === null || inside === outside) shared.push(name);
  }
  if (shared.join() === "cgroup" && facts.kind === "podman" && facts.cgroupVersion === "1") {
    return [
      {
        level: "note",
        text: "Podman on cgroup v1 provides no cgroup namespace: a sandbox can read its cgroup's name, but change nothing there.",
        fix: "Boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1), or use Docker or the oci runtime.",
      },
    ];
  }
  if (shared.length > 0) return [{ level: "problem", text: `A sandbox shares namespaces with the host: ${shared.join(", ")}.` }];
  return [{ level: "ok", text: `A sandbox started with separate namespaces: ${namespaces.join(", ")}.` }];
}

/** Imports an image that contains only the guest, so that a probe needs no other image. */
async function importGuestImage(docker: DockerContext, engine: Engine): Promise<string> {
  const guest = await readFile(docker.context.guestPath);
  const archive = Readable.from([archiveOf([{ name: "guest", kind: "file", mode: 0o755, uid: 0, gid: 0, content: guest }])], {
    objectMode: false,
  });
  const reference = `caisson-probe:${docker.stateLabel}`;
  await engine.call("importing an image for the probe", async (docker) => {
    const progress = (await docker.importImage(archive, { repo: reference })) as Readable;
    // The import is done when its progress stream ends.
    for await (const _ of progress);
  });
  return reference;
}
