import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";

const tones: Readonly<Record<SandboxInfo["state"], Tone>> = {
  pending: "idle",
  creating: "busy",
  running: "good",
  paused: "warn",
  completing: "busy",
  completed: "idle",
  failed: "bad",
};

/** Shows the state, or the health of a running sandbox with a problem. */
export function SandboxState({ sandbox: { state, health } }: { sandbox: Pick<SandboxInfo, "state" | "health"> }) {
  if (state === "running" && health !== undefined && health !== "ok") {
    return <Badge tone={health === "unresponsive" ? "bad" : "warn"}>{health}</Badge>;
  }
  return <Badge tone={tones[state]}>{state}</Badge>;
}
