import { accessSync, constants, readFileSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { DoctorReport, ModelReport, RuntimeReport } from "../../contract/machine/machine-verbs.ts";
import type { HidingRules } from "../../contract/workspace/workspace-guard.ts";
import { ifErrnoSync, UNREACHABLE } from "../../lib/failures.ts";
import { hostTemplate } from "../../runtimes/oci/template/host-template.ts";
import type { Resolver } from "../../sandbox/resolver.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import { findCredentialFiles } from "../../workspace/credential-files.ts";
import { whyWrongPlace } from "../../workspace/wrong-place.ts";

export interface DoctorOptions {
  version: string;
  runtimes: RuntimeSet;
  resolver: Resolver;
  home: string;
  path: string;
  /** The current folder, which would be the workspace. */
  cwd: string;
  stateDir: string;
  hiding: HidingRules;
  /** The runtimes to examine; default: all. */
  only?: readonly string[];
  /** A model to test with a short request. */
  model?: string;
  examineModels(ask: string | undefined): Promise<ModelReport>;
}

/** Probes every runtime by actually starting a sandbox in it. Throws `invalid` for an unknown name. */
export async function examine(options: DoctorOptions): Promise<DoctorReport> {
  await options.resolver.forget();
  const reports: RuntimeReport[] = [];
  for (const name of options.only ?? options.runtimes.names) reports.push(await examineRuntime(options, name));
  const template = await hostTemplate({ home: options.home, path: options.path });
  return {
    version: options.version,
    machine: {
      kernel: readLine("/proc/sys/kernel/osrelease"),
      architecture: process.arch,
      user: process.getuid?.() === 0 ? "root" : "ordinary",
      cgroups: cgroupLayout(),
    },
    runtimes: reports,
    chosen: await chosenOf(options),
    visible: template.describe(),
    workspace: await examineFolder(options),
    models: await options.examineModels(options.model),
  };
}

async function examineFolder({ cwd, home, stateDir, hiding }: DoctorOptions): Promise<DoctorReport["workspace"]> {
  const refused = whyWrongPlace(cwd, { home, stateDir });
  const { paths, complete } = refused === null ? await findCredentialFiles(cwd, hiding) : { paths: [], complete: true };
  return { folder: cwd, refused, hidden: paths, complete };
}

async function examineRuntime(options: DoctorOptions, name: string): Promise<RuntimeReport> {
  const runtime = await options.runtimes.get(name);
  const probe = await options.resolver.probe(name);
  const capabilities = await runtime.capabilities().catch((error: unknown) => {
    // The probe has already reported why it is unusable.
    if (error instanceof CaissonError && !probe.usable) return null;
    throw error;
  });
  return { name, usable: probe.usable, startMs: probe.startMs, findings: probe.findings, capabilities };
}

async function chosenOf(options: DoctorOptions): Promise<string | null> {
  try {
    return (await options.resolver.resolve("auto")).name;
  } catch (error) {
    if (error instanceof CaissonError && error.code === "unavailable") return null;
    throw error;
  }
}

function cgroupLayout(): string {
  const mounts = readText("/proc/self/mountinfo").split("\n");
  const kinds = mounts.map((line) => line.split(" - ")[1]?.split(" ")[0]).filter((kind) => kind === "cgroup" || kind === "cgroup2");
  if (kinds.includes("cgroup")) return kinds.includes("cgroup2") ? "v1 with an additional v2 mount" : "v1";
  return kinds.includes("cgroup2") ? "v2" : "none";
}

/** Returns whether a program is on the search path, as in the host template. */
export function hasProgram(path: string, program: string): boolean {
  return path
    .split(":")
    .filter((folder) => folder.startsWith("/"))
    .some((folder) => ifErrnoSync(() => accessSync(join(folder, program), constants.X_OK) === undefined, UNREACHABLE, false));
}

function readLine(path: string): string {
  return readText(path).trim() || "unknown";
}

function readText(path: string): string {
  return ifErrnoSync(() => readFileSync(path, "utf8"), UNREACHABLE, "");
}
