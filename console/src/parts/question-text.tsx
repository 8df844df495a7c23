import styles from "./markdown.module.css";
import { Markdown } from "./markdown.tsx";
import { visibleLines } from "./visible-text.ts";

/**
 * A question of a run. Calls to allow or deny are shown literally, because Markdown would swallow parts of a command.
 */
export function QuestionText({ text, isLiteral }: { text: string; isLiteral: boolean }) {
  return isLiteral ? <p className={styles.plain}>{visibleLines(text)}</p> : <Markdown text={text} />;
}
