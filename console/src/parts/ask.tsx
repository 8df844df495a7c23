import { CircleHelp } from "lucide-react";
import { type ReactNode, useState } from "react";
import styles from "./ask.module.css";
import { Button } from "./button.tsx";
import { LongField } from "./field.tsx";
import { say, sayProblem } from "./toasts.tsx";

interface AskProps {
  /** The question, in a few words. */
  title: string;
  children?: ReactNode;
  /** The field for a comment on the answer. */
  field: { label: string; placeholder?: string };
  answers: readonly {
    label: string;
    look?: "main" | "danger";
    /** Whether this answer needs a comment. */
    needsText?: boolean;
    give(text: string): Promise<unknown>;
    /** The toast after the answer was accepted. */
    done: string;
  }[];
}

/** A question for a person, with buttons to answer it. */
export function Ask({ title, children, field, answers }: AskProps) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(false);
  const give = async ({ give: send, needsText = false, done }: AskProps["answers"][number]) => {
    if (needsText && text.trim() === "") return setProblem("Say what has to change.");
    setBusy(true);
    try {
      await send(text.trim());
      say(done);
      setText("");
      setProblem(undefined);
    } catch (error) {
      sayProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section className={styles.ask} aria-label={title}>
      <CircleHelp aria-hidden="true" />
      <div>
        <h2>{title}</h2>
        {children}
        <LongField
          label={field.label}
          placeholder={field.placeholder ?? "optional"}
          rows={2}
          value={text}
          problem={problem}
          onChange={(event) => setText(event.target.value)}
        />
        <div className={styles.answers}>
          {answers.map((answer) => (
            <Button key={answer.label} look={answer.look ?? "normal"} disabled={isBusy} onClick={() => void give(answer)}>
              {answer.label}
            </Button>
          ))}
        </div>
      </div>
    </section>
  );
}
