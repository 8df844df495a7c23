/** So long nobody types before a key is taken for an answer. */
const QUIET_MS = 500;

/**
 * Keeps what was meant for something else from answering a question that comes up while somebody is typing: a key
 * counts as an answer only after a pause.
 */
export interface QuestionGuard {
  /** Whether the next key answers this question; null: there is none. Once it does, it does so until that is gone. */
  takesAnswer(question: string | null): boolean;
  /** A key was typed that was no answer. */
  typed(): void;
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
    typed() {
      typedAtMs = now();
    },
  };
}
