import { createInterface } from "node:readline/promises";
import type { RunEvent } from "../../contract/run/run-event.ts";
import { waitsForResume } from "../../contract/run/run-facts.ts";
import type { CliContext } from "../context.ts";
import { type Line, line } from "../terminal/line.ts";

type Question = Extract<RunEvent, { type: "permission.asked" }>["data"];

const choices: Record<Question["kind"], string> = {
  tool: "y yes, a always, n no",
  budget: "y raise it, n end the run",
  stuck: "y continue, n end the run",
};

export interface Asking {
  /** Whether a user can answer at this terminal. */
  readonly isInteractive: boolean;
  /** Call this after the event was shown, so that the question appears below it and nothing overwrites it. */
  onEvent(event: RunEvent): void;
  close(): void;
}

/** Lets the user answer questions in the terminal, and steer the run by typing after Ctrl-C. */
export function createAsking(context: CliContext, id: string, json: boolean): Asking {
  const isInteractive = !json && context.stdout.isTerminal && context.stdin.isTTY;
  if (!isInteractive) return { isInteractive, onEvent: () => undefined, close: () => undefined };
  const reader = createInterface({ input: context.stdin });
  const { runs } = context.station;
  const by = context.variable("USER") ?? "user";
  let question: Question | null = null;
  const ask = (about: Question) => context.stdout.prompt(line`  [${choices[about.kind]}] `);
  const say = (text: Line) => context.stderr.print(text);

  /** Parses an answer; returns null for other text. */
  const answerTo = (currentQuestion: Question, typed: string) => {
    const found = /^(y|yes|a|always|n|no)$|^(?:n|no)[,:]? +(\S.*)$/i.exec(typed);
    if (found === null) return null;
    const [, word = "n", text] = found;
    const answer = /^n/i.test(word) ? ("deny" as const) : /^a/i.test(word) ? ("always" as const) : ("allow" as const);
    return { question: currentQuestion.question, answer, by, ...(text === undefined ? {} : { text }) };
  };
  const take = async (typed: string): Promise<void> => {
    const currentQuestion = question;
    const answer = currentQuestion && answerTo(currentQuestion, typed);
    if (answer) return await runs.answer(id, answer);
    const isHeld = waitsForResume(await runs.get(id));
    if (currentQuestion && !isHeld) {
      if (typed !== "")
        await say(line`  ${JSON.stringify(typed)} is not an answer, and was not passed on. To deny with a reason, type: n REASON`);
      return await ask(currentQuestion);
    }
    if (typed !== "") await runs.send(id, { text: typed, mode: "steer", source: "user" });
    if (isHeld) await runs.resume(id, { by });
    if (currentQuestion) await ask(currentQuestion);
  };

  reader.on("SIGINT", () => process.emit("SIGINT"));
  reader.on("line", (typed) => {
    void take(typed.trim()).catch((error: unknown) => say(line`caisson: ${error instanceof Error ? error.message : String(error)}`));
  });
  return {
    isInteractive,
    close: () => reader.close(),
    onEvent(event) {
      if (event.type === "permission.answered") question = null;
      if (event.type === "run.paused" && event.data.why === "user")
        void say(line`Interrupted. Type a message to steer it, Enter to continue, Ctrl-C again to stop.`);
      if (event.type !== "permission.asked") return;
      question = event.data;
      void ask(event.data);
    },
  };
}
