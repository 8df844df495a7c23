import type { SandboxInfo } from "../../../../src/contract/sandbox.ts";
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

/** What is wrong with one that runs comes before that it runs. */
export function SandboxState({ sandbox: { state, health } }: { sandbox: Pick<SandboxInfo, "state" | "health"> }) {
  if (state === "running" && health !== undefined && health !== "ok") {
    return <Badge tone={health === "unresponsive" ? "bad" : "warn"}>{health}</Badge>;
  }
  return <Badge tone={tones[state]}>{state}</Badge>;
}
