/** The pause in typing after which a key counts as an answer. */
const QUIET_MS = 500;

/**
 * Prevents keys meant for the input from answering a question that appears while the user is typing: a key counts as an
 * answer only after a pause.
 */
export interface QuestionGuard {
  /**
   * Whether the next key answers this question (null: no question is open). Once true, stays true while the question is
   * open.
   */
  takesAnswer(question: string | null): boolean;
  /** Records a key that was not an answer. */
  recordKey(): void;
}

export function createQuestionGuard(now: () => number = () => performance.now()): QuestionGuard {
  let typedAtMs = Number.NEGATIVE_INFINITY;
  let open: string | null = null;
  return {
    takesAnswer(question) {
      if (question === null) open = null;
      else if (open !== question && now() - typedAtMs >= QUIET_MS) open = question;
      return question !== null && open === question;
    },
    recordKey() {
      typedAtMs = now();
    },
  };
}
