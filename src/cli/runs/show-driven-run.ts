import { createInterface } from "node:readline/promises";
import type { FinishReason } from "../../contract/run.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import { waitsForResume } from "../../contract/run-facts.ts";
import { defined } from "../../lib/defined.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { followRun } from "./follow-run.ts";
import { printOutcome } from "./run-outcome.ts";

const SHOW_GRACE_MS = 1_000;

/** Exit codes of `run` by how it ended; 125 is the platform's failure. */
export const exitCodes: Record<FinishReason, number> = {
  done: 0,
  error: 1,
  stuck: 1,
  max_steps: 1,
  budget: 1,
  timeout: 124,
  cancelled: 130,
};

/** Shows a run that this process drives until `letGo`; Ctrl-C holds it and asks, a second one stops it. */
export async function showDrivenRun(
  context: CliContext,
  id: string,
  options: { json: boolean; letGo: AbortController; fromSeq?: number },
): Promise<number> {
  const { runs, sessions } = context.station;
  const shown = new AbortController();
  const asking = createAsking(context, id, options.json);
  const following = followRun(context, runs, id, {
    json: options.json,
    live: true,
    signal: shown.signal,
    onEvent: asking.onEvent,
    ...defined({ fromSeq: options.fromSeq }),
  });
  void watchInterruption(context, id, options.letGo);
  try {
    const ended = await runs.wait(id);
    const telling = following.then(async () => (options.json ? undefined : await printOutcome(context, sessions, ended)));
    // The run is over; only the reader of our output can still keep us, and whoever signals now is not willing to wait
    // for that one.
    await Promise.race([telling, context.interruption.next()]);
    return exitCodes[ended.finish ?? "error"];
  } finally {
    asking.close();
    shown.abort();
    await withinGrace(following.catch(() => undefined));
  }
}

/** What is still to be shown may be stuck in a pipe that nobody reads. */
async function withinGrace(showing: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, SHOW_GRACE_MS);
  await Promise.race([showing, over.promise]);
  clearTimeout(timer);
}

async function watchInterruption(context: CliContext, id: string, letGo: AbortController): Promise<void> {
  const { runs } = context.station;
  const first = await context.interruption.first;
  // Told to end by somebody who cannot be asked: the run stays as it is, and `caisson resume` goes on with it.
  if (first !== "SIGINT") {
    letGo.abort();
    return;
  }
  await runs.pause(id, { text: "interrupted" }).catch(() => undefined);
  await context.stderr.print(line`\nInterrupted. Type a message to steer it, Enter to go on, Ctrl-C again to stop.`);
  await context.interruption.second;
  await runs.stop(id, { by: "Ctrl-C" }).catch(() => letGo.abort());
}

/** On a terminal, questions are answered where they are asked, and lines typed after Ctrl-C steer the run. */
function createAsking(context: CliContext, id: string, json: boolean) {
  const interactive = !json && context.stdout.isTerminal && context.stdin.isTTY;
  if (!interactive) return { onEvent: (_: RunEvent) => undefined, close: () => undefined };
  const reader = createInterface({ input: context.stdin });
  const by = context.variable("USER") ?? "user";
  let question: Extract<RunEvent, { type: "permission.asked" }>["data"] | null = null;
  reader.on("SIGINT", () => process.emit("SIGINT"));
  reader.on("line", (typed) => {
    void answerLine(context, id, { line: typed, question, by }).catch(async (error: unknown) => {
      await context.stderr.print(line`caisson: ${error instanceof Error ? error.message : String(error)}`);
    });
  });
  return {
    close: () => reader.close(),
    onEvent(event: RunEvent) {
      if (event.type === "permission.answered") question = null;
      if (event.type !== "permission.asked") return;
      question = event.data;
      const choices =
        event.data.kind === "tool"
          ? "y yes, a always, n no"
          : event.data.kind === "budget"
            ? "y raise it, n end the run"
            : "y go on, n end the run";
      void context.stdout.prompt(line`  [${choices}] `);
    },
  };
}

async function answerLine(
  { station: { runs } }: CliContext,
  id: string,
  about: { line: string; question: Extract<RunEvent, { type: "permission.asked" }>["data"] | null; by: string },
): Promise<void> {
  const word = about.line.trim().toLowerCase();
  if (about.question && /^(y|yes|a|always|n|no)$/.test(word)) {
    const answer = word.startsWith("n") ? "deny" : word.startsWith("a") ? "always" : "allow";
    await runs.answer(id, { question: about.question.question, answer, by: about.by });
    return;
  }
  if (word !== "") await runs.send(id, { text: about.line.trim(), mode: "steer", source: "user" });
  if (waitsForResume(await runs.get(id))) await runs.resume(id, { by: about.by });
}
