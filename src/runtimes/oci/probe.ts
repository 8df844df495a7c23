import { readlinkSync } from "node:fs";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Finding, Probe } from "../../sandbox/runtime.ts";
import type { OwnedSandbox, Process } from "../../sandbox/sandbox.ts";
import { findings, problemOf } from "./findings.ts";
import { sharingFindings } from "./layers/sharing.ts";
import type { OciContext } from "./oci-context.ts";

const namespaces = ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] as const;
const COMMAND_TIMEOUT_MS = 10_000;

/** Starts a sandbox, runs a command in it and compares its namespaces with the host's. Never throws. */
export async function probeHouse(
  oci: OciContext,
  options: { create(config: SandboxConfig): Promise<OwnedSandbox>; memoryFindings(): Promise<Finding[]> },
): Promise<Probe> {
  const before = await findings(oci);
  if (before.some(({ level }) => level === "problem")) return { usable: false, startMs: null, findings: before };
  const startedMs = performance.now();
  try {
    await using sandbox = await options.create(SandboxConfig.parse({}));
    const process = await sandbox.spawn({
      argv: ["/bin/sh", "-c", `for name in ${namespaces.join(" ")}; do echo "$name $(readlink /proc/self/ns/$name)"; done; id -u`],
      timeoutMs: COMMAND_TIMEOUT_MS,
    });
    const { text, firstMs } = await readOutput(process);
    const result = [...compare(text), ...(await sharingFindings(oci)), ...(await options.memoryFindings())];
    return { usable: result.every(({ level }) => level !== "problem"), startMs: firstMs - startedMs, findings: [...before, ...result] };
  } catch (error) {
    return { usable: false, startMs: null, findings: [...before, problemOf(error)] };
  }
}

async function readOutput(process: Process): Promise<{ text: string; firstMs: number }> {
  let text = "";
  let firstMs = Number.NaN;
  for await (const { stream, data } of process.output) {
    if (Number.isNaN(firstMs)) firstMs = performance.now();
    if (stream === "stdout") text += Buffer.from(data).toString("latin1");
  }
  return { text, firstMs };
}

/**
 * Compares the namespaces that the sandbox reports with the host's. Equal names would mean that nothing separates them.
 */
function compare(text: string): Finding[] {
  const lines = text.trim().split("\n");
  const shared = namespaces.filter((name) => {
    const inside = lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
    return inside === undefined || inside === "" || inside === readlinkSync(`/proc/self/ns/${name}`);
  });
  const uid = lines.at(-1);
  const result: Finding[] = [];
  if (shared.length > 0) result.push({ level: "problem", text: `a sandbox shares these namespaces with the host: ${shared.join(", ")}` });
  if (uid !== "1000") result.push({ level: "problem", text: `commands run as uid ${uid} instead of 1000` });
  if (result.length === 0) result.push({ level: "ok", text: `a sandbox started with separate namespaces: ${namespaces.join(", ")}` });
  return result;
}
