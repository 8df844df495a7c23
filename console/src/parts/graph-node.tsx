import styles from "./graph-node.module.css";
import { type NodeState, StateIcon, stateWords } from "./graph-state.tsx";

interface GraphNodeProps {
  state: NodeState;
  /** Where the state alone says too little. */
  word?: string | undefined;
  name: string;
  /** A word or two beside the name. */
  notes?: readonly string[];
  /** What it is about: a line, or two where there is room for them. */
  about?: string;
  linesMax?: 1 | 2;
  /** What comes before it: read out where edges are drawn, and shown where they are not. */
  after?: string;
  isAfterShown?: boolean;
  isChosen: boolean;
  onChoose(): void;
}

/** A step of a workflow or a task of a spec, in its state. */
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
