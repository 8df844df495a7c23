import { X } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../../src/contract/run-verbs.ts";
import { plural } from "../../../parts/amounts.ts";
import { Button } from "../../../parts/button.tsx";
import { LongField } from "../../../parts/field.tsx";
import { say, sayProblem } from "../../../parts/toasts.tsx";
import { useUnsaved } from "../../../parts/unsaved.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import { useStation } from "../../../station/station.tsx";
import { sendWords } from "../message-box.tsx";
import styles from "./changes.module.css";
import { type DiffPlace, placeName, type ReviewComment, reviewMessage } from "./review-comments.ts";

interface CommentBoxProps {
  path: string;
  at: DiffPlace;
  onComment(text: string): void;
  onClose(): void;
}

/** Words about one place: Ctrl Enter adds them, Escape lets them go. */
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
  return side === "before" ? `, line ${line} as it was before` : `, line ${line}`;
}

interface CommentsProps {
  view: RunView;
  comments: readonly ReviewComment[];
  onChange(comments: readonly ReviewComment[]): void;
}

/** What was remarked so far; sent, it is one message to the agent. */
export function Comments({ view, comments, onChange }: CommentsProps) {
  const station = useStation();
  const [isBusy, setBusy] = useState(false);
  useUnsaved(comments.length > 0, { text: `You have not sent ${plural(comments.length, "comment")}.`, params: ["tab", "at"] });
  if (comments.length === 0) return null;
  const send = () => {
    setBusy(true);
    sendWords(station, view, { text: reviewMessage(comments), mode: "steer" })
      .then(() => {
        onChange([]);
        say("The agent has your comments");
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
          <Button look="plain" label="Take it back" icon={<X />} onClick={() => onChange(comments.filter((each) => each !== comment))} />
        </div>
      ))}
      <Button look="main" disabled={isBusy} onClick={send}>
        Send {plural(comments.length, "comment")} to the agent
      </Button>
    </section>
  );
}
