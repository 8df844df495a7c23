import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { RuntimeReport } from "../../contract/machine/machine-verbs.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { showRuntime } from "../machine/doctor.ts";
import { bad, bold, dim, good, line, type Piece } from "../terminal/line.ts";
import { cutToWidth, plainText } from "../terminal/plain-text.ts";
import { demoAgent } from "./demo-agent.ts";
import { networkStops } from "./demo-network.ts";
import { type DemoFolder, quietly, type RunQuietly, type Stop, tour } from "./demo-tour.ts";

/** The number of round trips: enough for a meaningful median. */
const ROUNDS = 30;
const MIB = 1024 * 1024;

export async function runDemo(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.flag("spec")) return await (await import("./demo-spec.ts")).demoSpec(context, args);
  const print = (piece: Piece = "") => context.stdout.print(line`${piece}`);
  await print(bold("1  What this machine can do"));
  const runtime = await chooseRuntime(context, args, { print });
  const folder = await makeFolder();
  try {
    await print(bold(`2  A sandbox (${runtime.name}) over the folder ${folder.workspace}`));
    const began = performance.now();
    const request = { runtime: runtime.name, spec: configOf(runtime, folder) };
    const sandbox = await context.station.sandboxes.create(request, context.interruption);
    const run = quietly(context.tools, sandbox);
    try {
      const first = await run(["echo", "hello"]);
      await print(line`   created, first output after ${bold(showDuration(performance.now() - began))}: ${first.stdout.trim()}`);
      await print();
      await print(bold("3  What happens inside stays inside"));
      const out = { context, run, print };
      const insideFailures = await walk({ ...out, stops: tour({ sandbox, run, folder, home: context.home }) });
      await print(bold("4  You decide what it can reach"));
      await using network = await networkStops({ sandbox: sandbox.id, run, networks: context.station.networks });
      if (network.stops.length === 0) await print("   (the sandbox has no curl to show this with)");
      const failures = insideFailures + (await walk({ ...out, stops: network.stops }));
      await print(bold("5  What it costs"));
      await print(line`   a command in a live sandbox: ${bold(showDuration(await medianRoundTrip(run)))} (median of ${ROUNDS})`);
      const destroying = performance.now();
      await sandbox.destroy();
      await print(line`   removing the sandbox: ${bold(showDuration(performance.now() - destroying))}`);
      await print();
      await print(bold("6  An agent at work"));
      const examples = join(context.packageDir, "examples", "demo");
      const agentFailures = await demoAgent(context, { examples, model: args.option("model"), runtime: runtime.name, print });
      await print();
      const all = failures + agentFailures;
      await print(all === 0 ? good("Everything held.") : bad(`${all} of the claims above did not hold.`));
      return all === 0 ? 0 : 1;
    } finally {
      await sandbox.destroy();
    }
  } finally {
    await rm(folder.root, { recursive: true, force: true });
  }
}

/** Throws `unavailable` if the requested runtime cannot isolate, or if none can. */
async function chooseRuntime(
  context: CliContext,
  args: ParsedArguments,
  out: { print: (line?: Piece) => Promise<void> },
): Promise<RuntimeReport> {
  const requestedRuntime = args.option("runtime") ?? context.config.runtime;
  const { runtimes, chosen } = await context.station.machine.doctor(requestedRuntime === "auto" ? {} : { only: [requestedRuntime] });
  for (const runtime of runtimes) {
    // The demo never runs on the host unless the user asks for it.
    if (requestedRuntime === "auto" && runtime.name === "host") continue;
    const report = { ...runtime, capabilities: null, findings: runtime.findings.filter((finding) => finding.level !== "ok") };
    for (const row of showRuntime(report, { chosen: false })) await out.print(line`   ${row}`);
  }
  await out.print();
  const found = runtimes.find(({ name }) => name === (requestedRuntime === "auto" ? chosen : requestedRuntime));
  if (found?.usable) return found;
  throw new CaissonError(
    "unavailable",
    requestedRuntime === "auto" ? "no runtime here can isolate a sandbox" : `the runtime ${requestedRuntime} is not usable here`,
    {
      hint: "See: caisson doctor",
    },
  );
}

async function makeFolder(): Promise<DemoFolder> {
  const root = await mkdtemp(join(tmpdir(), "caisson-demo-"));
  const workspace = join(root, "project");
  const secret = join(root, "secret.txt");
  await mkdir(workspace);
  await writeFile(join(workspace, "notes.txt"), "written outside\n");
  await writeFile(secret, "the host's secret\n", { mode: 0o644 });
  return {
    root,
    workspace,
    secret,
    async unchanged() {
      const names = await readdir(workspace);
      return names.join() === "notes.txt" && (await readFile(join(workspace, "notes.txt"), "utf8")) === "written outside\n";
    },
  };
}

/** Sets a memory limit only if the runtime can enforce it: a demo should not fail on a machine without cgroups. */
function configOf({ capabilities }: RuntimeReport, folder: DemoFolder): SandboxConfig {
  const access = capabilities?.workspaceAccess.includes("overlay") ? "overlay" : "ro";
  return SandboxConfig.parse({
    workspace: { kind: "folder", path: folder.workspace, access },
    limits: capabilities?.limits.memoryBytes ? { memoryBytes: 256 * MIB } : {},
  });
}

async function walk(options: {
  context: CliContext;
  run: RunQuietly;
  stops: readonly Stop[];
  print: (line?: Piece) => Promise<void>;
}): Promise<number> {
  const { run, stops, print } = options;
  let failures = 0;
  for (const stop of stops) {
    if (options.context.interruption.signal.aborted) throw new CaissonError("cancelled", "interrupted");
    await stop.before?.();
    const began = performance.now();
    const result = await run(stop.argv, stop.timeoutMs);
    const held = await stop.holds(result);
    if (!held) failures++;
    await print(line`   ${held ? good("✓") : bad("✗")} ${stop.claim}  ${dim(showDuration(performance.now() - began))}`);
    await print(dim(`       $ ${stop.shown}`));
    for (const row of excerpt(result.stdout + result.stderr)) await print(dim("       ", row));
    if (!result.ended.startsWith("exited")) await print(dim(`       → ${result.ended}`));
  }
  await print();
  return failures;
}

/** Returns the first lines, cut to the width of a terminal. */
function excerpt(text: string): string[] {
  const rows = plainText(text)
    .split("\n")
    .filter((row) => row.trim() !== "");
  const firstRows = rows.slice(0, 3).map((row) => cutToWidth(row, 110));
  return rows.length > 3 ? [...firstRows, `… ${rows.length - 3} more ${rows.length === 4 ? "line" : "lines"}`] : firstRows;
}

async function medianRoundTrip(run: RunQuietly): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    await run(["/bin/true"]);
    times.push(performance.now() - began);
  }
  return times.sort((left, right) => left - right)[Math.floor(ROUNDS / 2)] as number;
}
