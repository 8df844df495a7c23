import type { RunView, StartRunInput } from "../../contract/run/run-verbs.ts";
import type { ChangedFile } from "../../contract/session/session-verbs.ts";
import { ignore } from "../../lib/failures.ts";
import type { CliContext } from "../context.ts";
import { asCaissonError, failureLines } from "../failure.ts";
import { bold, dim, type Line, line, messageLines } from "../terminal/line.ts";
import { wrapText } from "../terminal/plain-text.ts";
import { chatFooter, choicesOf } from "./chat-footer.ts";
import { aboutRun, leavingLines, turnLines, unappliedFiles } from "./chat-outcome.ts";
import { createChatView } from "./chat-view.ts";
import { completeInput } from "./complete-input.ts";
import { Conversation } from "./conversation.ts";
import { readEarlierTurn, saidLines } from "./earlier-turn.ts";
import type { InputHistory } from "./input-history.ts";
import type { Key } from "./key-decoder.ts";
import { readKeys } from "./keyboard.ts";
import { emptyPrompt, type Prompt, type PromptAction, pressKey, submitPrompt } from "./prompt.ts";
import { createQuestionGuard } from "./question-guard.ts";
import { createScreen, type Footer } from "./screen.ts";
import { runSlashCommand, slashCommands } from "./slash-commands.ts";

export interface ChatOptions {
  context: CliContext;
  history: InputHistory;
  /** The run to continue. If null, the first message starts one. */
  continued: RunView | null;
  /** The host folder that the workspace shows, or null. */
  folder: string | null;
  request: (task: string) => Promise<StartRunInput>;
  /** The model for the next turn of a continued run. */
  model: string | undefined;
  defaultModel: string | undefined;
}

const DRAW_MS = 100;
const GREETING = "The agent works on a copy: nothing changes here until you /apply it. /help lists the commands.";

/** A conversation between a user at a terminal and an agent, until the user leaves. */
export class Chat {
  readonly #options: ChatOptions;
  readonly #view;
  readonly #screen;
  readonly #conversation;
  readonly #guard = createQuestionGuard();
  readonly #left = Promise.withResolvers<void>();
  #prompt: Prompt;
  #candidates: readonly string[] = [];
  #notice: string | null = null;
  /** Whether another Ctrl-C leaves the chat. */
  #isLeaving = false;
  #changed: readonly ChangedFile[] = [];
  #about: string;
  #looking: Promise<void> = Promise.resolve();
  #takingIn: Promise<void> = Promise.resolve();
  /** Work that keys started. */
  readonly #pending = new Set<Promise<void>>();

  constructor(options: ChatOptions) {
    const { context, continued, defaultModel } = options;
    this.#options = options;
    this.#prompt = emptyPrompt(options.history.inputs);
    this.#about = continued?.model ?? defaultModel ?? "no model: /model lists those that your keys allow";
    this.#view = createChatView({ columns: () => context.stdout.size().cols });
    this.#screen = createScreen(context.stdout, (size) => this.#footer(size));
    this.#conversation = new Conversation({
      runs: context.station.runs,
      by: context.variable("USER") ?? "user",
      run: continued?.run ?? null,
      request: options.request,
      beforeTurn: () => this.#looking,
      afterTurn: (run) => this.#afterTurn(run),
      show: (event) => this.#screen.print(this.#view.lines(event)),
      tell: (error) => this.#tell(error),
      onChange: () => this.#screen.redraw(),
    });
    this.#conversation.model = options.model ?? null;
  }

  /** Resolves when the user has left and the closing lines are printed. */
  async untilLeft(): Promise<void> {
    const { context } = this.#options;
    const { stdout, stderr } = context;
    const print = (lines: readonly Line[]) => this.#screen.print(lines);
    stdout.divert(print);
    stderr.divert(print);
    const timer = setInterval(() => this.#tick(), DRAW_MS);
    {
      using _pastes = stdout.bracketPastes();
      using _keys = readKeys(context, (key) => this.#press(key));
      await this.#greet().catch((error: unknown) => this.#tell(error));
      await Promise.race([this.#left.promise, context.interruption.first, stdout.broken]);
      clearInterval(timer);
      stdout.divert(null);
      stderr.divert(null);
      await this.#screen.close();
    }
    await this.#leave();
  }

  async #greet(): Promise<void> {
    const { context, continued } = this.#options;
    if (continued === null) {
      await this.#screen.print([
        line`${bold("caisson")} ${dim(context.version)} · ${context.cwd}`,
        ...wrapText(GREETING, context.stdout.size().cols - 1).map((row) => dim(row)),
        line``,
      ]);
      return;
    }
    const { lines, asked: questions } = await readEarlierTurn(context.station.runs, continued.run, this.#view);
    await this.#screen.print([line`${bold("caisson")} ${dim(context.version)} · ${dim(continued.run)}`, ...lines]);
    if (continued.finish === null) await this.#conversation.take(continued, questions);
    else await this.#look();
  }

  async #leave(): Promise<void> {
    const { context } = this.#options;
    const { run } = this.#conversation;
    const isOver = this.#conversation.state === "idle";
    await this.#conversation.leave();
    await Promise.all(this.#pending);
    // A run that was still working may have changed more files since the last look.
    if (!isOver) await this.#look();
    else await this.#looking;
    const files = this.#changed;
    await context.stdout.print(leavingLines(run, files, isOver));
  }

  async #afterTurn(run: RunView): Promise<void> {
    this.#about = `${aboutRun(run)} · ${run.model}`;
    await this.#look();
    await this.#screen.print([...turnLines(this.#changed), line``]);
  }

  async #tell(error: unknown): Promise<void> {
    await this.#screen.print(failureLines(asCaissonError(error)));
  }

  #footer(size: { cols: number; rows: number }): Footer {
    const { state, question } = this.#conversation;
    return chatFooter(
      {
        state,
        question,
        takesAnswer: this.#guard.takesAnswer(question?.question ?? null),
        live: state === "idle" || state === "held" ? [] : this.#view.live(size.cols),
        edited: this.#prompt.edited,
        candidates: this.#candidates,
        notice: this.#notice,
        about: this.#about,
      },
      size,
    );
  }

  #tick(): void {
    if (this.#conversation.state !== "idle") this.#screen.redraw();
  }

  #press(key: Key): void {
    const { question } = this.#conversation;
    const isInterrupt = key.kind === "press" && key.name === "interrupt";
    if (question !== null && !isInterrupt && this.#guard.takesAnswer(question.question)) {
      this.#do(() => this.#answer(key));
      return;
    }
    if (!isInterrupt) {
      this.#guard.recordKey();
      this.#isLeaving = false;
    }
    this.#notice = null;
    this.#candidates = [];
    const { prompt, action } = pressKey(this.#prompt, key);
    this.#prompt = prompt;
    this.#do(() => this.#act(action));
    this.#screen.redraw();
  }

  /** Runs work in parallel with everything else and prints its failures. */
  #do(work: () => Promise<void> | void): void {
    const pending = (async () => await work())()
      .catch((error: unknown) => this.#tell(error))
      .finally(() => {
        this.#pending.delete(pending);
        this.#screen.redraw();
      });
    this.#pending.add(pending);
  }

  /** Serializes work on a session's files. A new turn waits for all of it, and so does leaving. */
  async #exclusively(work: () => Promise<void>): Promise<void> {
    const done = this.#looking.then(work);
    this.#looking = ignore(done, "awaited below; the next operation does not depend on its result");
    await done;
  }

  /** Updates the list of unapplied files. */
  async #look(): Promise<void> {
    await this.#exclusively(async () => {
      const { run } = this.#conversation;
      const looking = run === null ? null : ignore(unappliedFiles(this.#options.context, run), "the status line omits it");
      this.#changed = (await looking) ?? [];
    });
  }

  #act(action: PromptAction): Promise<void> | void {
    switch (action) {
      case "submit":
        return this.#submit();
      case "interrupt":
        return this.#interrupt();
      case "leave":
        return this.#left.resolve();
      case "complete":
        return this.#complete();
      case "redraw":
        return this.#screen.clear();
      case "cancel":
      case null:
        return;
    }
  }

  async #answer(key: Key): Promise<void> {
    const { question } = this.#conversation;
    if (question === null) return;
    const answers = { y: "allow", a: "always", n: "deny" } as const;
    const typed = key.kind === "text" ? key.text.toLowerCase() : "";
    const answer = typed === "y" || typed === "n" || (typed === "a" && question.kind === "tool") ? answers[typed] : null;
    if (answer !== null) return await this.#conversation.answer(answer);
    await this.#screen.print([...messageLines(`? ${question.text}`), dim(`  answer with one of: ${choicesOf(question)}`)]);
  }

  /** Handles inputs in the order in which they were typed, even if they come faster than we answer. */
  async #submit(): Promise<void> {
    const input = this.#prompt.edited.text;
    this.#prompt = submitPrompt(this.#prompt, input);
    const done = this.#takingIn.then(() => this.#takeIn(input));
    this.#takingIn = ignore(done, "awaited below; the next input does not depend on its result");
    await done;
  }

  async #takeIn(input: string): Promise<void> {
    const text = input.trim();
    if (text === "") return await this.#conversation.resume();
    await this.#options.history.add(input);
    const isCommand = /^\/\S/.test(input);
    // A message that steers a run is shown when the run has received it.
    if (isCommand || this.#conversation.state === "idle") await this.#screen.print(saidLines(text));
    await (isCommand ? this.#command(text) : this.#conversation.say(text));
  }

  async #command(text: string): Promise<void> {
    const { context, defaultModel } = this.#options;
    // The chat occupies the terminal, so even long output goes above the prompt.
    const unpaged = { ...context, pager: { open: async () => context.stdout, close: async () => undefined } };
    const leave = () => this.#left.resolve();
    const chooseModel = (name: string) => {
      this.#conversation.model = name;
      this.#about = `${name} from the next turn`;
    };
    const slash = { context: unpaged, conversation: this.#conversation, defaultModel, chooseModel, leave };
    await this.#exclusively(() => runSlashCommand(slash, text));
    await this.#screen.print([line``]);
    if (/^\/(apply|undo|new)\b/.test(text)) await this.#look();
  }

  async #interrupt(): Promise<void> {
    const { state, question } = this.#conversation;
    if (state === "working" && question === null) return await this.#conversation.hold();
    if (state === "working" || state === "held") return await this.#conversation.stop();
    if (state === "idle" && this.#prompt.edited.text !== "") {
      this.#prompt = emptyPrompt(this.#prompt.history);
      return;
    }
    if (this.#isLeaving || state === "stopping") return this.#left.resolve();
    this.#isLeaving = true;
    this.#notice = "Press Ctrl-C again to leave, or Ctrl-D.";
  }

  async #complete(): Promise<void> {
    const before = this.#prompt;
    const { edited, candidates } = await completeInput(before.edited, {
      folder: this.#options.folder,
      changed: this.#changed.map(({ path }) => path),
      commands: slashCommands.map(({ name }) => `/${name}`),
    });
    // The user typed in the meantime.
    if (this.#prompt !== before) return;
    this.#prompt = { ...before, edited };
    this.#candidates = candidates;
  }
}
