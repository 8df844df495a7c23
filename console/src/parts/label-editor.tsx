import { X } from "lucide-react";
import { type FormEvent, useState } from "react";
import type { Labels } from "../../../src/contract/ids.ts";
import type { ChangeLabels } from "../../../src/contract/label/change-labels.ts";
import { isStationLabel } from "../../../src/contract/label/station-labels.ts";
import { Button } from "./button.tsx";
import styles from "./label-editor.module.css";
import { sayProblem } from "./toasts.tsx";
import { visibleText } from "./visible-text.ts";

interface LabelEditorProps {
  kind: "run" | "sandbox";
  labels: Labels;
  onChange(changes: ChangeLabels): Promise<unknown>;
}

/** Edits the labels of a run or sandbox. The station's own labels cannot be removed. */
export function LabelEditor({ kind, labels, onChange }: LabelEditorProps) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const change = async (changes: ChangeLabels) => {
    setSending(true);
    try {
      await onChange(changes);
      return true;
    } catch (error) {
      sayProblem(error);
      return false;
    } finally {
      setSending(false);
    }
  };
  const at = text.indexOf("=");
  const add = async (event: FormEvent) => {
    event.preventDefault();
    if (at > 0 && (await change({ [text.slice(0, at).trim()]: text.slice(at + 1).trim() }))) setText("");
  };
  return (
    <div className={styles.editor}>
      {Object.keys(labels).length > 0 && (
        <ul className={styles.labels} aria-label="Labels">
          {Object.entries(labels).map(([key, value]) => (
            <li key={key} className={styles.label}>
              <span className={styles.text} title={visibleText(`${key}=${value}`)}>
                <span className={styles.key}>{visibleText(key)}</span>
                {visibleText(value)}
              </span>
              {!isStationLabel(kind, key) && (
                <button
                  type="button"
                  disabled={isSending}
                  aria-label={`Remove the label ${visibleText(key)}`}
                  onClick={() => void change({ [key]: null })}
                >
                  <X aria-hidden="true" />
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      <form className={styles.add} onSubmit={(event) => void add(event)}>
        <input
          aria-label="New label"
          placeholder="key=value"
          autoComplete="off"
          spellCheck={false}
          maxLength={321}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit" disabled={isSending || at < 1}>
          Add
        </Button>
      </form>
    </div>
  );
}
