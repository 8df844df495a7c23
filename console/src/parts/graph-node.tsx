import styles from "./graph-node.module.css";
import { type NodeState, StateIcon, stateWords } from "./graph-state.tsx";

interface GraphNodeProps {
  state: NodeState;
  /** Replaces the word for the state if that is too vague. */
  word?: string | undefined;
  name: string;
  /** A word or two beside the name. */
  notes?: readonly string[];
  /** A description: one line, or two if there is room. */
  about?: string;
  linesMax?: 1 | 2;
  /** What comes before it: for screen readers if edges are drawn, otherwise visible. */
  after?: string;
  isAfterShown?: boolean;
  isChosen: boolean;
  onChoose(): void;
}

/** A workflow step or a spec task, with its state. */
export function GraphNode(props: GraphNodeProps) {
  const { state, word = stateWords[state], name, notes = [], about = "", linesMax = 1, after = "", isAfterShown = false } = props;
  return (
    <button type="button" className={styles.node} data-state={state} aria-pressed={props.isChosen} onClick={props.onChoose}>
      <StateIcon state={state} />
      <span className={styles.words}>
        <span className={styles.line}>
          <span className={styles.name}>{name}</span>
          {notes.map((note) => (
            <span key={note} className={styles.note}>
              {note}
            </span>
          ))}
          <span className={styles.state}>{word}</span>
        </span>
        {about !== "" && (
          <span className={linesMax === 2 ? styles.lines : styles.about} title={about}>
            {about}
          </span>
        )}
        {after !== "" && <span className={isAfterShown ? styles.after : "visually-hidden"}>after {after}</span>}
      </span>
    </button>
  );
}
