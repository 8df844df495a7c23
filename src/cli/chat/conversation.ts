import { CaissonError } from "../../contract/error.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import { waitsForResume } from "../../contract/run-facts.ts";
import type { RunView, StartRunInput } from "../../contract/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { RunVerbs } from "../../station/runs/verbs.ts";

export type Question = Extract<RunEvent, { type: "permission.asked" }>["data"];

/** What the run of a conversation does: `held` until somebody says something, `stopping` once it was asked to end. */
export type ConversationState = "idle" | "working" | "held" | "stopping";

export interface ConversationOptions {
  runs: RunVerbs;
  by: string;
  /** What a new run is asked for, with its first words. */
  request: (task: string) => Promise<StartRunInput>;
  /** Waited for before a turn begins. */
  beforeTurn: () => Promise<void>;
  /** Called when the run of a turn has ended. */
  afterTurn: (run: RunView) => Promise<void>;
  show: (event: RunEvent) => Promise<void>;
  tell: (error: unknown) => Promise<void>;
  onChange: () => void;
}

/** One run that is continued turn after turn: each turn ends it, and the next words reopen it. */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #questions = new Map<string, Question>();
  #run: string | null;
  #state: ConversationState = "idle";
  #letGo = new AbortController();
  #turn: Promise<void> = Promise.resolve();
  /** Said when the run was just about to end. */
  readonly #waiting: string[] = [];
  /** Of the next turn; null: as before. */
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

  /** What has to be answered first. */
  get question(): Question | null {
    return this.#questions.values().next().value ?? null;
  }

  /**
   * Begins a turn, or steers the one that is going on. Resolves once it was taken in; what comes of it is shown, and
   * what fails is told.
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
      // It ended just now: this begins the next turn.
      this.#waiting.push(text);
      return;
    }
    await this.goOn();
  }

  /** Goes on with a run that has not ended, such as one whose process died. */
  async take({ run, seq }: RunView, asked: readonly Question[]): Promise<void> {
    const { runs, by } = this.#options;
    for (const question of asked) this.#questions.set(question.question, question);
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

  /** Ends the hold. */
  async goOn(): Promise<void> {
    if (this.#run !== null && this.#state === "held") await this.#options.runs.resume(this.#run, { by: this.#options.by });
  }

  async stop(): Promise<void> {
    if (this.#run === null || this.#state === "idle") return;
    this.#become("stopping");
    await this.#options.runs.stop(this.#run, { by: this.#options.by });
  }

  /** The next thing that is said begins another run. */
  forget(): void {
    if (this.#state === "idle") this.#run = null;
  }

  /** Lets go of a run that has not ended; resolves when nothing of it is at work here. */
  async leave(): Promise<void> {
    this.#letGo.abort();
    await this.#turn;
  }

  #become(state: ConversationState): void {
    this.#state = state;
    this.#options.onChange();
  }

  async #takeTurn(begin: (signal: AbortSignal) => Promise<{ begun: RunView; fromSeq: number }>): Promise<void> {
    this.#letGo = new AbortController();
    const { signal } = this.#letGo;
    this.#become("working");
    const beginning = begin(signal);
    this.#turn = beginning
      .then(({ begun, fromSeq }) => {
        this.#run = begun.run;
        return this.#follow(begun.run, fromSeq);
      })
      .catch((error: unknown) => (signal.aborted ? undefined : this.#options.tell(error)))
      .finally(() => this.#endTurn(signal));
    await beginning.catch(() => undefined);
  }

  async #endTurn(signal: AbortSignal): Promise<void> {
    this.#questions.clear();
    this.#become("idle");
    const next = this.#waiting.splice(0).join("\n");
    if (next !== "" && !signal.aborted) await this.say(next);
  }

  async #begin(text: string, signal: AbortSignal): Promise<{ begun: RunView; fromSeq: number }> {
    const { runs, by, request, beforeTurn } = this.#options;
    const asked = defined({ model: this.model ?? undefined });
    await beforeTurn();
    if (this.#run === null) return { begun: await runs.start({ ...(await request(text)), ...asked }, { signal }), fromSeq: 1 };
    const { finish, seq } = await runs.get(this.#run);
    if (finish === null) {
      await runs.send(this.#run, { text, mode: "steer", source: "user" });
      return { begun: await runs.resume(this.#run, { by, signal }), fromSeq: seq + 1 };
    }
    const begun = await runs.continue(this.#run, { text, by, attended: true, ...asked }, { signal });
    return { begun, fromSeq: seq + 1 };
  }

  /** Shows what a run does, to its end. Throws what made this process let go of it. */
  async #follow(run: string, fromSeq: number): Promise<void> {
    const { runs, afterTurn } = this.#options;
    const shown = new AbortController();
    const following = this.#showEvents(run, { fromSeq, signal: shown.signal });
    try {
      const ended = await runs.wait(run);
      await following;
      await afterTurn(ended);
    } finally {
      shown.abort();
      await following.catch(() => undefined);
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
