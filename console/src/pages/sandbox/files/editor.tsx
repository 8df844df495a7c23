import { indentWithTab } from "@codemirror/commands";
import { HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { type RefObject, useEffect, useRef } from "react";
import { ignore } from "../../../../../src/lib/failures.ts";
import styles from "./files.module.css";

interface EditorProps {
  name: string;
  text: string;
  canEdit: boolean;
  onDirty(isDirty: boolean): void;
  onSave(): void;
  /** Set to a function that returns the current text. */
  read: RefObject<(() => string) | null>;
}

/**
 * An editor that highlights the file's language, which it loads on demand. Ctrl S saves; Escape, then Tab leaves it.
 */
export default function Editor(props: EditorProps) {
  const { name, text, canEdit, read } = props;
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    if (place.current === null) return;
    const language = new Compartment();
    const separator = text.includes("\r\n") ? "\r\n" : "\n";
    const save = () => {
      latest.current.onSave();
      return true;
    };
    const view = new EditorView({
      parent: place.current,
      doc: text,
      extensions: [
        keymap.of([{ key: "Mod-s", preventDefault: true, run: save }, indentWithTab]),
        basicSetup,
        language.of([]),
        syntaxHighlighting(colors),
        EditorState.lineSeparator.of(separator),
        EditorState.readOnly.of(!canEdit),
        EditorView.editable.of(canEdit),
        EditorView.contentAttributes.of({ "aria-label": "File content", ...(!canEdit && { tabindex: "0" }) }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) latest.current.onDirty(true);
        }),
      ],
    });
    read.current = () => view.state.sliceDoc();
    let isGone = false;
    const description = LanguageDescription.matchFilename(languages, name);
    const loading = description?.load().then((support) => {
      if (!isGone) view.dispatch({ effects: language.reconfigure(support) });
    });
    if (loading) void ignore(loading, "the text is readable without colors");
    return () => {
      isGone = true;
      read.current = null;
      view.destroy();
    };
  }, [name, text, canEdit, read]);
  return <div ref={place} className={styles.editor} />;
}

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--warn)" },
  { tag: [tags.comment, tags.meta], color: "var(--text-3)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.heading], color: "var(--accent)" },
  { tag: [tags.typeName, tags.className, tags.tagName], color: "var(--code-type)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);
