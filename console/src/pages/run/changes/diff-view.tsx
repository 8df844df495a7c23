import { defaultHighlightStyle, HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { ignore } from "../../../../../src/lib/failures.ts";
import styles from "./changes.module.css";
import { boxes, removedLineAt, showBox } from "./diff-box.ts";
import type { DiffPlace } from "./review-comments.ts";

export interface DiffViewProps {
  path: string;
  before: string;
  after: string;
  isSideBySide: boolean;
  /** Absent if lines cannot be commented on. */
  commenting?: {
    /** Called when the user clicks a line. */
    onPlace(place: DiffPlace): void;
    /** The place of the box, and its content. */
    at: DiffPlace | null;
    box: ReactNode;
  };
}

/**
 * Shows the changes in a file, highlighted by its language, with unchanged lines folded. A box can be opened below any
 * line.
 */
export default function DiffView({ path, before, after, isSideBySide, commenting }: DiffViewProps) {
  const place = useRef<HTMLDivElement>(null);
  const editors = useRef<readonly EditorView[]>([]);
  const [content] = useState(() => Object.assign(document.createElement("div"), { className: styles.inText ?? "" }));
  const pointed = useRef(commenting?.onPlace);
  pointed.current = commenting?.onPlace;
  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    const language = new Compartment();
    const shared = [look, boxes, language.of([])];
    const collapseUnchanged = { margin: 3, minSize: 6 };
    const make = isSideBySide ? createSideBySideView : createUnifiedView;
    const onPlace = (at: DiffPlace) => pointed.current?.(at);
    const views = make({ parent, before, after, shared, onPlace, collapseUnchanged });
    editors.current = views.editors;
    void highlight(path).then((support) => {
      for (const view of views.editors) view.dispatch({ effects: language.reconfigure(support) });
    });
    return () => {
      editors.current = [];
      views.destroy();
    };
  }, [path, before, after, isSideBySide]);
  const at = commenting?.at ?? null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: shown again when the editors change.
  useEffect(() => {
    showBox(editors.current, at, content);
    if (at === null) return;
    const frame = requestAnimationFrame(() => content.querySelector("textarea")?.focus());
    return () => cancelAnimationFrame(frame);
  }, [at, content, path, before, after, isSideBySide]);
  return (
    <>
      <div ref={place} className={`${styles.diff} ${commenting === undefined ? "" : styles.commented}`} />
      {createPortal(commenting?.box, content)}
    </>
  );
}

interface Parts {
  parent: HTMLElement;
  before: string;
  after: string;
  shared: Extension;
  onPlace(place: DiffPlace): void;
  collapseUnchanged: { margin: number; minSize: number };
}

/** Line numbers that the user can click. */
const numbersOf = (side: DiffPlace["side"], onPlace: Parts["onPlace"]): Extension =>
  lineNumbers({
    domEventHandlers: {
      mousedown(view, block) {
        const { number, text } = view.state.doc.lineAt(block.from);
        onPlace({ side, line: number, code: text });
        return true;
      },
    },
  });

function createSideBySideView({ parent, before, after, shared, onPlace, collapseUnchanged }: Parts) {
  const view = new MergeView({
    parent,
    a: { doc: before, extensions: [numbersOf("before", onPlace), shared] },
    b: { doc: after, extensions: [numbersOf("after", onPlace), shared] },
    collapseUnchanged,
    gutter: true,
  });
  return { editors: [view.a, view.b], destroy: () => view.destroy() };
}

function createUnifiedView({ parent, before, after, shared, onPlace, collapseUnchanged }: Parts) {
  const merged = unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged, gutter: true });
  const view = new EditorView({
    parent,
    state: EditorState.create({ doc: after, extensions: [numbersOf("after", onPlace), shared, merged] }),
  });
  // Removed lines have no number here, so the user clicks the lines themselves.
  const onClick = (event: MouseEvent) => {
    const removed = event.target instanceof Element ? removedLineAt(view, event.target) : null;
    if (removed !== null && getSelection()?.isCollapsed !== false) onPlace({ side: "before", ...removed });
  };
  view.dom.addEventListener("click", onClick);
  return { editors: [view], destroy: () => view.destroy() };
}

async function highlight(path: string): Promise<Extension> {
  const language = LanguageDescription.matchFilename(languages, path.split("/").at(-1) ?? path);
  if (language === null) return [];
  return (await ignore(language.load(), "the text is readable without colors")) ?? [];
}

/** CodeMirror's default colors, lightened on dark. */
const colors = HighlightStyle.define(
  defaultHighlightStyle.specs.map(({ color, ...spec }) => ({
    ...spec,
    ...(color !== undefined && { color: `light-dark(${color}, color-mix(in oklab, ${color}, white 60%))` }),
  })),
);

const look: Extension = [
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ "aria-label": "File content" }),
  highlightSpecialChars(),
  syntaxHighlighting(colors),
  EditorView.theme({
    "&": { backgroundColor: "transparent", color: "var(--text)", fontSize: "var(--text-s)" },
    ".cm-content, .cm-gutters": { fontFamily: "var(--mono)" },
    ".cm-gutters": { backgroundColor: "transparent", color: "var(--text-3)", border: "none" },
    "&.cm-merge-b .cm-changedText, .cm-changedText": { background: "color-mix(in oklab, var(--good), transparent 78%)" },
    "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "color-mix(in oklab, var(--bad), transparent 78%)" },
    // In an entirely new line, nothing needs to stand out.
    "& .cm-insertedLine .cm-changedText": { background: "none" },
    ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--text-3)", padding: "2px 8px" },
    "&.cm-merge-b .cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-fill)" },
    "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--bad-fill)" },
  }),
];
