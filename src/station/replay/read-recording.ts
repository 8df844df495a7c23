import type { RecordedEvent } from "../../agent/replay/replay-items.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { Log } from "../../log/log.ts";
import { createRewoundEvents } from "../runs/rewound-events.ts";
import { runEvents } from "../runs/run-events.ts";

/** A recording is in memory as a whole. */
const EVENTS_MAX = 1_000_000;
const CHARACTERS_MAX = 256 * 1024 * 1024;

/** Reads the log of a run as far as it goes now. Throws `internal` for a damaged log, `too_large`. */
export async function readRecording(log: Log, run: string): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  const rewound = createRewoundEvents();
  let characters = 0;
  for await (const { seq, ...read } of runEvents(log, run, {})) {
    const event = withoutStream(read as RunEvent);
    characters += JSON.stringify(event.data).length;
    if (events.length >= EVENTS_MAX || characters > CHARACTERS_MAX) {
      throw new CaissonError("too_large", `the recording of ${run} is too large to replay`, {
        hint: `A replay reads at most ${EVENTS_MAX} events and ${CHARACTERS_MAX / 1024 / 1024} MiB.`,
      });
    }
    events.push({ seq, event });
    if (event.type === "run.rewound") rewound.add({ seq, data: event.data });
  }
  return events.map((recorded) => (rewound.has(recorded.seq) ? { ...recorded, isRewound: true } : recorded));
}

/** Streamed text is a large part of many logs, and a replay needs only its place. */
function withoutStream(event: RunEvent): RunEvent {
  if (event.type === "model.streamed") return { ...event, data: { ...event.data, text: "" } };
  return event.type === "tool.streamed" ? { ...event, data: { ...event.data, text: "" } } : event;
}
