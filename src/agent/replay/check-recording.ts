import { CaissonError } from "../../contract/error/error.ts";
import type { RecordedEvent } from "./replay-items.ts";

/**
 * Throws `gone` if a recording lacks what a replay needs: its beginning, an event between two others, a model's answer
 * or a tool's result. Names the first one.
 */
export function checkRecording(run: string, events: readonly RecordedEvent[]): void {
  if (events[0]?.event.type !== "run.created") throw incomplete(run, "it does not begin with the creation of the run");
  let step = 0;
  let model: string | null = null;
  let open = new Map<string, string>();
  for (const [index, { seq, event, isRewound }] of events.entries()) {
    if (seq !== index + 1) throw incomplete(run, `event ${index + 1}, in step ${step}, is missing`);
    if (isRewound) continue;
    switch (event.type) {
      case "step.started":
        refuseOpen(run, step, model, open);
        if (event.data.step !== step + 1)
          throw incomplete(run, `step ${step + 1} is missing; step ${event.data.step} follows step ${step}`);
        step = event.data.step;
        break;
      case "model.requested":
        model = event.data.call;
        break;
      case "model.ended":
        if (event.data.call !== model)
          throw incomplete(run, `step ${step} has an answer to the model call ${event.data.call} without the call`);
        model = null;
        open = new Map(event.data.parts.flatMap((part) => (part.kind === "toolCall" ? [[part.call, part.name] as const] : [])));
        break;
      case "tool.ended":
        open.delete(event.data.call);
        break;
      case "run.ended":
        // The run may end before the calls that its model asked for.
        model = null;
        open = new Map();
        break;
      case "run.rewound":
        step = event.data.toStep;
        model = null;
        open = new Map();
        break;
      default:
        break;
    }
  }
}

function refuseOpen(run: string, step: number, model: string | null, open: ReadonlyMap<string, string>): void {
  if (model !== null) throw incomplete(run, `step ${step} has no answer to the model call ${model}`);
  const [first] = open;
  if (first !== undefined) throw incomplete(run, `step ${step} has no result of the tool call ${first[0]} (${first[1]})`);
}

function incomplete(run: string, why: string): CaissonError {
  return new CaissonError("gone", `the recording of ${run} is incomplete: ${why}`, {
    hint: `\`caisson logs --check\` reads the whole log and lists its damage.`,
  });
}
