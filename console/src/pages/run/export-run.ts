import type { Client } from "../../../../src/client/connect.ts";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { saveFile } from "../../parts/save-file.ts";
import { runHtml } from "./run-html.ts";
import { emptyTimeline, foldEvent, type NumberedEvent } from "./timeline.ts";

/** Downloads everything that the log contains about a run, as a file. */
export async function downloadRun(station: Client, view: RunView, form: "json" | "html"): Promise<void> {
  const events: NumberedEvent[] = [];
  for await (const event of station.runs.events(view.run)) events.push(event as NumberedEvent);
  const text = form === "json" ? JSON.stringify({ run: view, events }, null, 2) : htmlOf(view, events);
  const type = form === "json" ? "application/json" : "text/html;charset=utf-8";
  saveFile(`${view.run}.${form}`, text, type);
}

function htmlOf(view: RunView, events: readonly NumberedEvent[]): string {
  const timeline = emptyTimeline();
  for (const event of events) foldEvent(timeline, event);
  return runHtml(view, timeline);
}
