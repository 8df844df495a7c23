import { CircleHelp } from "lucide-react";
import { useState } from "react";
import type { Budgets } from "../../../../src/contract/run/run.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { QuestionText } from "../../parts/question-text.tsx";
import { sayProblem } from "../../parts/toasts.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { BudgetFields } from "./budget-fields.tsx";
import styles from "./items.module.css";
import type { QuestionItem } from "./timeline-item.ts";

type Answer = "allow" | "always" | "deny";
const words: Record<Answer, string> = { allow: "allowed", always: "always allowed", deny: "denied" };

/** A question of the run, with buttons until it is answered. */
export function QuestionCard({ item, run, isOpen }: { item: QuestionItem; run: string; isOpen: boolean }) {
  const station = useStation();
  const [text, setText] = useState("");
  const [budgets, setBudgets] = useState<Budgets>({});
  const [isBusy, setBusy] = useState(false);
  const answer = (choice: Answer) => {
    setBusy(true);
    station.runs
      .answer(run, {
        question: item.question,
        answer: choice,
        ...(text.trim() !== "" && { text: text.trim() }),
        ...(item.about === "budget" && choice !== "deny" && Object.keys(budgets).length > 0 && { budgets }),
      })
      .catch((error: unknown) => {
        setBusy(false);
        sayProblem(error);
      });
  };
  const isWaiting = item.answer === null && isOpen;
  return (
    <section className={`${styles.question} ${isWaiting ? styles.waiting : ""}`}>
      <CircleHelp aria-hidden="true" />
      <div className={styles.questionBody}>
        <QuestionText text={item.text} isLiteral={item.about === "tool"} />
        {item.answer !== null && (
          <p className={styles.quiet}>
            {words[item.answer.answer]} by {visibleText(item.answer.by)}
            {item.answer.text !== null && `: ${visibleLines(item.answer.text)}`}
          </p>
        )}
        {isWaiting && (
          <>
            {item.about === "budget" && <BudgetFields budgets={budgets} onChange={setBudgets} />}
            <Field label="Note" placeholder="optional" value={text} onChange={(event) => setText(event.target.value)} />
            <div className={styles.answers}>
              <Button look="main" disabled={isBusy} onClick={() => answer("allow")}>
                {item.about === "tool" ? "Allow" : "Continue"}
              </Button>
              {item.about === "tool" && item.pattern !== null && (
                <Button disabled={isBusy} onClick={() => answer("always")} title={visibleText(item.pattern)}>
                  Always allow {visibleText(item.pattern.slice(0, 60))}
                </Button>
              )}
              <Button look="danger" disabled={isBusy} onClick={() => answer("deny")}>
                {item.about === "tool" ? "Deny" : "Stop the run"}
              </Button>
            </div>
          </>
        )}
      </div>
    </section>
  );
}
