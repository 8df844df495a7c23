import type { NewRunEvent, RunEvent } from "../../contract/run/run-event.ts";
import type { ReplayItem } from "./replay-items.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

/** A position in a recording. It looks ahead up to where the next driver began. */
export class RecordingCursor {
  readonly #items: ReplayItem[];
  #at = 0;

  constructor(items: readonly ReplayItem[]) {
    this.#items = [...items];
  }

  /** The item at the position; undefined at the end of the recording. */
  get item(): ReplayItem | undefined {
    return this.#items[this.#at];
  }

  get position(): number {
    return this.#at;
  }

  advance(): void {
    this.#at += 1;
  }

  /** The next event of the loop, or null if the driver had none. */
  next(): ReplayItem | null {
    return this.#ofThisDriver().next().value ?? null;
  }

  /** The event of the loop after the next one. */
  afterNext(): ReplayItem | null {
    return this.#ofThisDriver().drop(1).next().value ?? null;
  }

  /** The result of a call that the same driver awaited, or undefined. */
  resultOf(call: string): EventOf<"tool.ended"> | undefined {
    for (const { event } of this.#ofThisDriver()) if (event.type === "tool.ended" && event.data.call === call) return event;
    return undefined;
  }

  /** The call whose result comes next. */
  nextResult(): string | null {
    for (const { event } of this.#ofThisDriver()) if (event.type === "tool.ended") return event.data.call;
    return null;
  }

  filesOf(call: string): EventOf<"file.changed">[] {
    return this.#ofThisDriver()
      .flatMap(({ event }) => (event.type === "file.changed" && event.data.call === call ? [event] : []))
      .toArray();
  }

  todosOf(call: string): EventOf<"todo.changed">[] {
    return this.#ofThisDriver()
      .flatMap(({ event }) => (event.type === "todo.changed" && event.data.call === call ? [event] : []))
      .toArray();
  }

  /** Moves the start of a call here: when exactly a parallel call starts, before others end, depends on time. */
  bringStart(event: NewRunEvent): void {
    if (event.type !== "tool.started") return;
    for (let at = this.#at; at < this.#items.length; at++) {
      const item = this.#items[at] as ReplayItem;
      const { type, data } = item.event;
      if (type === "tool.started" && data.call === event.data.call)
        return void this.#items.splice(this.#at, 0, ...this.#items.splice(at, 1));
      const isPassed = item.kind === "foreign" || (item.kind === "own" && (type === "tool.ended" || type === "file.changed"));
      if (!isPassed) return;
    }
  }

  has(type: RunEvent["type"]): boolean {
    return this.#items.some(({ event }) => event.type === type);
  }

  *#ofThisDriver(): Generator<ReplayItem> {
    for (let at = this.#at; at < this.#items.length; at++) {
      const item = this.#items[at] as ReplayItem;
      if (item.kind === "claim") return;
      if (item.kind === "own") yield item;
    }
  }
}
