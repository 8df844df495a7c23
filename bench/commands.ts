import { spawn } from "node:child_process";
import { once } from "node:events";
import { runCommand } from "../src/sandbox/run-command.ts";
import type { OwnedSandbox } from "../src/sandbox/sandbox.ts";
import { type Sample, timeEach } from "./measure.ts";
import { plainRuntimeArgv, runPeer } from "./peers.ts";
import { configOf, type Place } from "./place.ts";
import type { Row, Target } from "./report.ts";

const GROUP = "command in a live sandbox";

/** Starts a program that does nothing, and waits for it. */
export async function benchCommands(place: Place): Promise<{ rows: Row[]; targets: Target[] }> {
  const rows: Row[] = [];
  const add = (name: string, sample: Sample) => {
    rows.push({ group: GROUP, name, value: sample.p50, unit: "ms", p95: sample.p95, n: sample.n });
    return sample.p50;
  };
  const id = (await runPeer([...place.docker, "run", "-d", "--network", "none", place.image, "sleep", "600"])).trim();
  const execMs = add("`docker exec CONTAINER true`", await timeEach({ n: 20, once: () => runPeer([...place.docker, "exec", id, "true"]) }));
  await runPeer([...place.docker, "rm", "-f", id]);
  add(
    "bubblewrap, one each",
    await timeEach({ n: 40, once: () => runPeer(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "/bin/true"]) }),
  );
  for (const runtime of ["runc", "crun"] as const) add(`plain \`${runtime} exec\``, await plainExec(place, runtime));
  const spawnMs = add("`child_process.spawn` from Node, no sandbox", await timeEach({ n: 400, warmup: 50, once: plainSpawn }));
  await using oci = await place.oci({ ociRuntime: "crun" }).create(configOf());
  const ociMs = add("**oci**, library", await roundTrips(oci));
  await using docker = await place.dockerRuntime.create(configOf({ template: { kind: "image", reference: place.image } }));
  const dockerMs = add("**docker** runtime, library", await roundTrips(docker));
  return {
    rows,
    targets: [
      { name: "command in oci: faster than `docker exec`", measured: execMs / ociMs, unit: "×", atLeast: 70 },
      { name: "command in oci: no slower than plain spawn from Node", measured: spawnMs / ociMs, unit: "×", atLeast: 1 },
      { name: "command in the docker runtime: faster than `docker exec`", measured: execMs / dockerMs, unit: "×", atLeast: 30 },
    ],
  };
}

const roundTrips = (sandbox: OwnedSandbox) =>
  timeEach({
    n: 400,
    warmup: 50,
    once: async () => {
      const { ended } = await runCommand(sandbox, { argv: ["/bin/true"] });
      if (ended.kind !== "exited" || ended.exitCode !== 0) throw new Error(`true ended as ${JSON.stringify(ended)}`);
    },
  });

/** Collects the output, as the sandbox does. */
async function plainSpawn(): Promise<void> {
  const child = spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  await once(child, "close");
}

async function plainExec(place: Place, runtime: "runc" | "crun"): Promise<Sample> {
  const bundle = await place.bundle(runtime, ["sleep", "600"]);
  const at = (args: readonly string[]) => plainRuntimeArgv(runtime, ["--root", `${place.dir}/exec-${runtime}`, ...args]);
  const holder = spawn(at(["run", "--bundle", bundle, "held"])[0] ?? "", at(["run", "--bundle", bundle, "held"]).slice(1), {
    stdio: "ignore",
  });
  const ready = async () => (await runPeer(at(["state", "held"])).catch(() => "")).includes('"running"');
  while (!(await ready())) await new Promise((resolve) => setTimeout(resolve, 10));
  try {
    return await timeEach({ n: 20, once: () => runPeer(at(["exec", "held", "/bin/busybox", "true"])) });
  } finally {
    const holderExit = once(holder, "exit");
    // The `run` process removes the container when its program ends.
    await runPeer(at(["kill", "held", "KILL"]));
    await holderExit;
  }
}
