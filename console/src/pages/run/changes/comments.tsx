import { X } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { useStation } from "../../../data/station.tsx";
import { plural } from "../../../parts/amounts.ts";
import { Button } from "../../../parts/button.tsx";
import { LongField } from "../../../parts/field.tsx";
import { say, sayProblem } from "../../../parts/toasts.tsx";
import { useUnsaved } from "../../../parts/unsaved.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import { sendWords } from "../message-box.tsx";
import styles from "./changes.module.css";
import { type DiffPlace, placeName, type ReviewComment, reviewMessage } from "./review-comments.ts";

interface CommentBoxProps {
  path: string;
  at: DiffPlace;
  onComment(text: string): void;
  onClose(): void;
}

/** A box for a comment on one place. Ctrl Enter adds the comment, Escape discards it. */
export function CommentBox({ path, at, onComment, onClose }: CommentBoxProps) {
  const [text, setText] = useState("");
  const add = () => {
    if (text.trim() !== "") onComment(text);
  };
  return (
    <div className={styles.commentBox}>
      <LongField
        label={`Comment on ${visibleText(path)}${lineWords(at)}`}
        hint={at.line !== null && <code>{visibleText(at.code.slice(0, 200))}</code>}
        rows={3}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") return onClose();
          if (event.key !== "Enter" || (!event.ctrlKey && !event.metaKey)) return;
          event.preventDefault();
          add();
        }}
      />
      <div className={styles.commentActions}>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="main" disabled={text.trim() === ""} title="Ctrl Enter" onClick={add}>
          Add comment
        </Button>
      </div>
    </div>
  );
}

function lineWords({ line, side }: DiffPlace): string {
  if (line === null) return "";
  return side === "before" ? `, line ${line} before the change` : `, line ${line}`;
}

interface CommentsProps {
  view: RunView;
  comments: readonly ReviewComment[];
  onChange(comments: readonly ReviewComment[]): void;
}

/** The comments so far, to be sent to the agent as one message. */
export function Comments({ view, comments, onChange }: CommentsProps) {
  const station = useStation();
  const [isBusy, setBusy] = useState(false);
  useUnsaved(comments.length > 0, { text: `You have ${plural(comments.length, "unsent comment")}.`, params: ["tab", "at"] });
  if (comments.length === 0) return null;
  const send = () => {
    setBusy(true);
    sendWords(station, view, { text: reviewMessage(comments), mode: "steer" })
      .then(() => {
        onChange([]);
        say("Comments sent to the agent.");
      }, sayProblem)
      .finally(() => setBusy(false));
  };
  return (
    <section className={styles.comments} aria-label="Your comments">
      {comments.map((comment) => (
        <div key={`${placeName(comment)} ${comment.text}`} className={styles.comment}>
          <div>
            <code>{visibleText(placeName(comment))}</code>
            <p>{comment.text}</p>
          </div>
          <Button look="plain" label="Remove comment" icon={<X />} onClick={() => onChange(comments.filter((each) => each !== comment))} />
        </div>
      ))}
      <Button look="main" disabled={isBusy} onClick={send}>
        Send {plural(comments.length, "comment")} to the agent
      </Button>
    </section>
  );
}
