import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";

/** Returns a run's status as a word and a tone. What it waits for takes precedence over "running". */
export function statusOf(view: Pick<RunView, "status" | "finish" | "asked" | "health" | "paused">): { word: string; tone: Tone } {
  if (view.status === "ended") return endOf(view.finish);
  if (view.asked.length > 0) return { word: "needs input", tone: "warn" };
  if (view.status === "running" && view.health !== "ok")
    return { word: view.health, tone: view.health === "unresponsive" ? "bad" : "warn" };
  const open: Record<Exclude<RunView["status"], "ended">, { word: string; tone: Tone }> = {
    created: { word: "starting", tone: "busy" },
    queued: { word: "queued", tone: "idle" },
    running: { word: "running", tone: "busy" },
    paused: { word: "paused", tone: "warn" },
    interrupted: { word: "interrupted", tone: "bad" },
    damaged: { word: "damaged", tone: "bad" },
  };
  return open[view.status];
}

function endOf(finish: RunView["finish"]): { word: string; tone: Tone } {
  if (finish === "done") return { word: "done", tone: "good" };
  if (finish === "cancelled") return { word: "stopped", tone: "idle" };
  return { word: (finish ?? "ended").replaceAll("_", " "), tone: "bad" };
}

export function RunStatus({ view }: { view: RunView }) {
  const { word, tone } = statusOf(view);
  return (
    <Badge tone={tone} {...(view.paused !== null && { title: view.paused.text })}>
      {word}
    </Badge>
  );
}
