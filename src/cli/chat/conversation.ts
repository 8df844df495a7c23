import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import { waitsForResume } from "../../contract/run/run-facts.ts";
import type { RunView, StartRunInput } from "../../contract/run/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { RunVerbs } from "../../verbs/runs.ts";

export type Question = Extract<RunEvent, { type: "permission.asked" }>["data"];

/**
 * The state of a conversation's run: `held` until the user sends a message or resumes it, `stopping` after a request to
 * end.
 */
export type ConversationState = "idle" | "working" | "held" | "stopping";

export interface ConversationOptions {
  runs: RunVerbs;
  by: string;
  /** Builds the request for a new run from the first message. */
  request: (task: string) => Promise<StartRunInput>;
  /** Awaited before a turn starts. */
  beforeTurn: () => Promise<void>;
  /** Called when the run of a turn has ended. */
  afterTurn: (run: RunView) => Promise<void>;
  show: (event: RunEvent) => Promise<void>;
  tell: (error: unknown) => Promise<void>;
  onChange: () => void;
}

/** A run that is continued turn after turn: each turn ends it, and the next message reopens it. */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #questions = new Map<string, Question>();
  #run: string | null;
  #state: ConversationState = "idle";
  #releaseController = new AbortController();
  #turn: Promise<void> = Promise.resolve();
  /** Messages that arrived while the run was ending or not yet created. */
  readonly #waiting: string[] = [];
  /** The model for the next turn; null keeps the current one. */
  model: string | null = null;

  constructor(options: ConversationOptions & { run: string | null }) {
    this.#options = options;
    this.#run = options.run;
  }

  get run(): string | null {
    return this.#run;
  }

  get state(): ConversationState {
    return this.#state;
  }

  /** The question to answer first, or null. */
  get question(): Question | null {
    return this.#questions.values().next().value ?? null;
  }

  /**
   * Starts a turn, or steers the current one. Resolves when the station has accepted the message; results and failures
   * are printed.
   */
  async say(text: string): Promise<void> {
    if (this.#state === "idle") {
      await this.#takeTurn((signal) => this.#begin(text, signal));
      return;
    }
    if (this.#run === null || this.#state === "stopping") {
      this.#waiting.push(text);
      return;
    }
    try {
      await this.#options.runs.send(this.#run, { text, mode: "steer", source: "user" });
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "conflict") throw error;
      // The run has just ended, so this message starts the next turn.
      this.#waiting.push(text);
      return;
    }
    await this.resume();
  }

  /** Resumes a run that has not ended, such as one whose process died. */
  async take({ run, seq }: RunView, questions: readonly Question[]): Promise<void> {
    const { runs, by } = this.#options;
    for (const question of questions) this.#questions.set(question.question, question);
    await this.#takeTurn(async (signal) => ({ begun: await runs.resume(run, { by, signal }), fromSeq: seq + 1 }));
  }

  async answer(answer: "allow" | "always" | "deny"): Promise<void> {
    const [question] = this.#questions.keys();
    if (this.#run === null || question === undefined) return;
    await this.#options.runs.answer(this.#run, { question, answer, by: this.#options.by });
  }

  async hold(): Promise<void> {
    if (this.#run !== null && this.#state === "working") await this.#options.runs.pause(this.#run, { text: "interrupted" });
  }

  /** Resumes a held run. */
  async resume(): Promise<void> {
    if (this.#run !== null && this.#state === "held") await this.#options.runs.resume(this.#run, { by: this.#options.by });
  }

  async stop(): Promise<void> {
    if (this.#run === null || this.#state === "idle") return;
    this.#become("stopping");
    await this.#options.runs.stop(this.#run, { by: this.#options.by });
  }

  /** Continues with another run, and follows it if it is at work. The next message goes to it. */
  async switchTo(view: RunView): Promise<void> {
    if (this.#state !== "idle") return;
    this.#run = view.run;
    this.#questions.clear();
    this.#options.onChange();
    if (view.paused === null) await this.#takeTurn(async () => ({ begun: view, fromSeq: (view.forked?.seq ?? view.seq) + 1 }));
  }

  /** Makes the next message start another run. */
  forget(): void {
    if (this.#state === "idle") this.#run = null;
  }

  /** Detaches from a run that has not ended. Resolves when this process no longer works on it. */
  async leave(): Promise<void> {
    this.#releaseController.abort();
    await this.#turn;
  }

  #become(state: ConversationState): void {
    this.#state = state;
    this.#options.onChange();
  }

  async #takeTurn(begin: (signal: AbortSignal) => Promise<{ begun: RunView; fromSeq: number }>): Promise<void> {
    this.#releaseController = new AbortController();
    const { signal } = this.#releaseController;
    this.#become("working");
    const beginning = begin(signal);
    this.#turn = beginning
      .then(({ begun: view, fromSeq }) => {
        this.#run = view.run;
        return this.#follow(view.run, fromSeq);
      })
      .catch((error: unknown) => (signal.aborted ? undefined : this.#options.tell(error)))
      .finally(() => this.#endTurn(signal));
    await ignore(beginning, "its failure is shown above");
  }

  async #endTurn(signal: AbortSignal): Promise<void> {
    this.#questions.clear();
    this.#become("idle");
    const next = this.#waiting.splice(0).join("\n");
    if (next !== "" && !signal.aborted) await this.say(next);
  }

  async #begin(text: string, signal: AbortSignal): Promise<{ begun: RunView; fromSeq: number }> {
    const { runs, by, request, beforeTurn } = this.#options;
    const overrides = defined({ model: this.model ?? undefined });
    await beforeTurn();
    if (this.#run === null) return { begun: await runs.start({ ...(await request(text)), ...overrides }, { signal }), fromSeq: 1 };
    const { finish, seq } = await runs.get(this.#run);
    if (finish === null) {
      await runs.send(this.#run, { text, mode: "steer", source: "user" });
      return { begun: await runs.resume(this.#run, { by, signal }), fromSeq: seq + 1 };
    }
    const view = await runs.continue(this.#run, { text, by, attended: true, ...overrides }, { signal });
    return { begun: view, fromSeq: seq + 1 };
  }

  /** Shows what a run does until it ends. Throws whatever made this process detach from it. */
  async #follow(run: string, fromSeq: number): Promise<void> {
    const { runs, afterTurn } = this.#options;
    const controller = new AbortController();
    const following = this.#showEvents(run, { fromSeq, signal: controller.signal });
    try {
      const ended = await runs.wait(run);
      await following;
      await afterTurn(ended);
    } finally {
      controller.abort();
      await ignore(following, "the first error is thrown");
    }
  }

  async #showEvents(run: string, from: { fromSeq: number; signal: AbortSignal }): Promise<void> {
    for await (const { seq: _, ...event } of this.#options.runs.events(run, { ...from, follow: true })) {
      await this.#options.show(event);
      this.#note(event);
    }
  }

  #note(event: RunEvent): void {
    if (event.type === "permission.asked") this.#questions.set(event.data.question, event.data);
    if (event.type === "permission.answered") this.#questions.delete(event.data.question);
    const isHeld = event.type === "run.paused" && waitsForResume({ paused: event.data });
    if (isHeld && this.#state === "working") this.#become("held");
    else if (event.type === "run.continued" && this.#state === "held") this.#become("working");
    else this.#options.onChange();
  }
}
