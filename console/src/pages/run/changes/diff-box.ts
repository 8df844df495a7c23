import { getChunks, getOriginalDoc } from "@codemirror/merge";
import { StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import type { DiffPlace } from "./review-comments.ts";

interface Box {
  pos: number;
  /** Negative: above the line at the position. */
  side: number;
  content: HTMLElement;
}

const setBox = StateEffect.define<Box | null>();

/** An element of ours between two lines of the text. */
class BoxWidget extends WidgetType {
  readonly #content: HTMLElement;
  constructor(content: HTMLElement) {
    super();
    this.#content = content;
  }
  override toDOM(): HTMLElement {
    return this.#content;
  }
  // The editor must not see keys typed into the box.
  override ignoreEvent(): boolean {
    return true;
  }
}

/** Lets an editor show one box. */
export const boxes = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(decorations, { effects }) {
    for (const effect of effects) {
      if (!effect.is(setBox)) continue;
      if (effect.value === null) return Decoration.none;
      const { pos, side, content } = effect.value;
      return Decoration.set([Decoration.widget({ widget: new BoxWidget(content), block: true, side }).range(pos)]);
    }
    return decorations;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Shows the content at a place of the diff: in the editor with that line, or at the top. */
export function showBox(editors: readonly EditorView[], at: DiffPlace | null, content: HTMLElement): void {
  const [first, second] = editors;
  const view = at?.side === "before" ? first : (second ?? first);
  for (const each of editors) if (each !== view || at === null) each.dispatch({ effects: setBox.of(null) });
  if (view === undefined || at === null) return;
  const place = second === undefined && at.side === "before" ? removedPlace(view, at.line) : linePlace(view.state.doc, at.line);
  view.dispatch({ effects: [setBox.of({ ...place, content }), EditorView.scrollIntoView(place.pos, { y: "nearest" })] });
}

function linePlace(doc: Text, line: number | null): Pick<Box, "pos" | "side"> {
  return line === null ? { pos: 0, side: -1 } : { pos: doc.line(Math.min(line, doc.lines)).to, side: 1 };
}

/** Returns the place of a removed line in the unified view, which shows it above its replacement. */
function removedPlace(view: EditorView, line: number | null): Pick<Box, "pos" | "side"> {
  const original = getOriginalDoc(view.state);
  const from = original.line(Math.min(line ?? 1, original.lines)).from;
  const chunk = getChunks(view.state)?.chunks.find(({ fromA, endA }) => fromA <= from && from <= endA);
  // Below the removed lines, whose side is -1.
  return { pos: Math.min(chunk?.fromB ?? 0, view.state.doc.length), side: -0.5 };
}

/** Returns the removed line that an element of the unified view shows; null for other elements. */
export function removedLineAt(view: EditorView, element: Element): { line: number; code: string } | null {
  const row = element.closest(".cm-deletedLine");
  const chunkRow = row?.closest(".cm-deletedChunk");
  if (row == null || chunkRow == null || !view.dom.contains(row)) return null;
  const pos = view.posAtDOM(chunkRow);
  const chunk = getChunks(view.state)?.chunks.find(({ fromB }) => Math.min(fromB, view.state.doc.length) === pos);
  if (chunk === undefined) return null;
  const original = getOriginalDoc(view.state);
  const index = [...chunkRow.querySelectorAll(".cm-deletedLine")].indexOf(row);
  const { number, text } = original.line(Math.min(original.lineAt(chunk.fromA).number + index, original.lines));
  return { line: number, code: text };
}
