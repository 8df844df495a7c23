import type { SandboxSpec } from "../../../contract/sandbox.ts";
import type { Probe } from "../../runtime.ts";
import type { OwnedSandbox } from "../../sandbox.ts";
import type { House } from "./house.ts";

export async function probeHouse(_house: House, _options: { create(spec: SandboxSpec): Promise<OwnedSandbox> }): Promise<Probe> {
  return { usable: true, startMs: null, findings: [] };
}
