import { CaissonError } from "../../../../../src/contract/error/error.ts";
import { ForkRun } from "../../../../../src/contract/run/run-verbs.ts";

/** A fork as the form stores it: as text, until the user submits it. */
export interface ForkDraft {
  count: string;
  text: string;
  model: string;
  name: string;
  steps: string;
}

export const emptyFork: ForkDraft = { count: "1", text: "", model: "", name: "", steps: "" };

export type ForkProblems = Partial<Record<keyof ForkDraft, string>>;

const Checked = ForkRun.omit({ by: true });
type Request = (typeof Checked)["_input"];

/** Converts the form to a request, checked as in the station, or returns what is wrong with each field. */
export function forkRequest(
  draft: ForkDraft,
  at: number,
): { request: Request; problems: null } | { request: null; problems: ForkProblems } {
  const request: Request = {
    at,
    count: Number(draft.count),
    attended: true,
    detached: true,
    ...(draft.text.trim() !== "" && { text: draft.text }),
    ...(draft.model.trim() !== "" && { model: draft.model.trim() }),
    ...(draft.name.trim() !== "" && { name: draft.name.trim() }),
    ...(draft.steps.trim() !== "" && { budgets: { steps: Number(draft.steps) } }),
  };
  const { success, error } = Checked.safeParse(request);
  if (success) return { request, problems: null };
  const problems: ForkProblems = {};
  for (const { path, message } of error.issues) {
    const field = path[0] === "budgets" ? "steps" : path[0];
    if (typeof field === "string" && field in emptyFork) problems[field as keyof ForkDraft] ??= message;
  }
  return { request: null, problems };
}

/** Replaces the station's hints, which name command-line options, with hints about the form. */
export function hintsOfForm(error: unknown): unknown {
  if (!(error instanceof CaissonError) || error.details?.budget === undefined) return error;
  return new CaissonError(error.code, error.message, { hint: "Allow it more steps above.", cause: error });
}
