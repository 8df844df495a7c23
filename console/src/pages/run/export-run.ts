import type { Client } from "../../../../src/client/connect.ts";
import type { RunView } from "../../../../src/contract/run-verbs.ts";
import { runHtml } from "./run-html.ts";
import { emptyTimeline, foldEvent, type NumberedEvent } from "./timeline.ts";

/** Everything that the log has of a run, as a file that the browser saves. */
export async function downloadRun(station: Client, view: RunView, form: "json" | "html"): Promise<void> {
  const events: NumberedEvent[] = [];
  for await (const event of station.runs.events(view.run)) events.push(event as NumberedEvent);
  const text = form === "json" ? JSON.stringify({ run: view, events }, null, 2) : htmlOf(view, events);
  const type = form === "json" ? "application/json" : "text/html";
  save(new Blob([text], { type: `${type};charset=utf-8` }), `${view.run}.${form}`);
}

function htmlOf(view: RunView, events: readonly NumberedEvent[]): string {
  const timeline = emptyTimeline();
  for (const event of events) foldEvent(timeline, event);
  return runHtml(view, timeline);
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
