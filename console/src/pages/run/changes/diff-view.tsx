import { defaultHighlightStyle, HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import styles from "./changes.module.css";

export interface DiffViewProps {
  path: string;
  before: string;
  after: string;
  isSideBySide: boolean;
  /** A line of the new text was pointed at. */
  onLine(line: number, code: string): void;
}

/** What changed in a file, highlighted by its language; what did not is folded. */
export default function DiffView({ path, before, after, isSideBySide, onLine }: DiffViewProps) {
  const place = useRef<HTMLDivElement>(null);
  const pointed = useRef(onLine);
  pointed.current = onLine;
  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    const language = new Compartment();
    const shared = [look, language.of([])];
    const numbers = lineNumbers({
      domEventHandlers: {
        mousedown(view, block) {
          const line = view.state.doc.lineAt(block.from);
          pointed.current(line.number, line.text);
          return true;
        },
      },
    });
    const collapseUnchanged = { margin: 3, minSize: 6 };
    const views = isSideBySide
      ? sideBySide({ parent, before, after, shared, numbers, collapseUnchanged })
      : unified({ parent, before, after, shared, numbers, collapseUnchanged });
    void highlight(path).then((support) => {
      for (const view of views.editors) view.dispatch({ effects: language.reconfigure(support) });
    });
    return views.destroy;
  }, [path, before, after, isSideBySide]);
  return <div ref={place} className={styles.diff} />;
}

interface Parts {
  parent: HTMLElement;
  before: string;
  after: string;
  shared: Extension;
  numbers: Extension;
  collapseUnchanged: { margin: number; minSize: number };
}

function sideBySide({ parent, before, after, shared, numbers, collapseUnchanged }: Parts) {
  const view = new MergeView({
    parent,
    a: { doc: before, extensions: [lineNumbers(), shared] },
    b: { doc: after, extensions: [numbers, shared] },
    collapseUnchanged,
    gutter: true,
  });
  return { editors: [view.a, view.b], destroy: () => view.destroy() };
}

function unified({ parent, before, after, shared, numbers, collapseUnchanged }: Parts) {
  const merged = unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged, gutter: true });
  const view = new EditorView({ parent, state: EditorState.create({ doc: after, extensions: [numbers, shared, merged] }) });
  return { editors: [view], destroy: () => view.destroy() };
}

async function highlight(path: string): Promise<Extension> {
  const language = LanguageDescription.matchFilename(languages, path.split("/").at(-1) ?? path);
  if (language === null) return [];
  return language.load().catch(() => []);
}

/** CodeMirror's own colours, lighter on dark. */
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
  EditorView.contentAttributes.of({ "aria-label": "Text of the file" }),
  highlightSpecialChars(),
  syntaxHighlighting(colors),
  EditorView.theme({
    "&": { backgroundColor: "transparent", color: "var(--text)", fontSize: "var(--text-s)" },
    ".cm-content, .cm-gutters": { fontFamily: "var(--mono)" },
    ".cm-gutters": { backgroundColor: "transparent", color: "var(--text-3)", border: "none" },
    ".cm-lineNumbers .cm-gutterElement": { cursor: "pointer" },
    "&.cm-merge-b .cm-changedText, .cm-changedText": { background: "color-mix(in oklab, var(--good), transparent 78%)" },
    "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "color-mix(in oklab, var(--bad), transparent 78%)" },
    // What is new as a whole has nothing that stands out in it.
    "& .cm-insertedLine .cm-changedText": { background: "none" },
    ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--text-3)", padding: "2px 8px" },
    "&.cm-merge-b .cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-fill)" },
    "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--bad-fill)" },
  }),
];
