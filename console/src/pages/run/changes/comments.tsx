import { X } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../../src/contract/run-verbs.ts";
import { plural } from "../../../parts/amounts.ts";
import { Button } from "../../../parts/button.tsx";
import { LongField } from "../../../parts/field.tsx";
import { say, sayProblem } from "../../../parts/toasts.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import { useStation } from "../../../station/station.tsx";
import { sendWords } from "../message-box.tsx";
import styles from "./changes.module.css";
import { type ReviewComment, reviewMessage } from "./review-comments.ts";

interface CommentBoxProps {
  path: string;
  line: number;
  code: string;
  onComment(text: string): void;
  onClose(): void;
}

export function CommentBox({ path, line, code, onComment, onClose }: CommentBoxProps) {
  const [text, setText] = useState("");
  return (
    <div className={styles.commentBox}>
      <LongField
        label={`Comment on ${visibleText(path)}, line ${line}`}
        hint={<code>{visibleText(code.slice(0, 200))}</code>}
        value={text}
        autoFocus
        onChange={(event) => setText(event.target.value)}
      />
      <div className={styles.commentActions}>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="main" disabled={text.trim() === ""} onClick={() => onComment(text)}>
          Add comment
        </Button>
      </div>
    </div>
  );
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
        <div key={`${comment.path}:${comment.line} ${comment.text}`} className={styles.comment}>
          <div>
            <code>
              {visibleText(comment.path)}:{comment.line}
            </code>
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
