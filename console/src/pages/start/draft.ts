import type { RunCreated } from "../../../../src/contract/run/run-event.ts";
import { StartRun, type StartRunInput } from "../../../../src/contract/run/run-verbs.ts";
import type { WorkspaceSource } from "../../../../src/contract/session/session.ts";

/** A run as the form stores it: as text, until the user submits it. */
export interface Draft {
  task: string;
  agent: string;
  model: string;
  source: "empty" | "folder" | "git" | "run";
  /** The path of a folder, the URL of a repository, or `RUN` or `RUN@STEP`. */
  place: string;
  ref: string;
  runtime: string;
  network: "none" | "allow" | "open";
  /** One host per line. */
  hosts: string;
  secrets: readonly string[];
  name: string;
  /** `KEY=VALUE`, one per line. */
  labels: string;
  costUsd: string;
  steps: string;
  minutes: string;
}

export const emptyDraft: Draft = {
  task: "",
  agent: "coder",
  model: "",
  source: "empty",
  place: "",
  ref: "",
  runtime: "",
  network: "none",
  hosts: "",
  secrets: [],
  name: "",
  labels: "",
  costUsd: "",
  steps: "",
  minutes: "",
};

export type DraftProblems = Partial<Record<keyof Draft, string>>;

/** Converts a draft to a request, validated as in the station, or returns what is wrong with each field. */
export function requestOf(draft: Draft): { request: StartRunInput; problems: null } | { request: null; problems: DraftProblems } {
  const request: StartRunInput = {
    task: draft.task,
    agent: draft.agent,
    ...(draft.model.trim() !== "" && { model: draft.model.trim() }),
    ...(draft.name.trim() !== "" && { name: draft.name.trim() }),
    labels: labelsOf(draft.labels),
    ...(draft.source === "run" && { from: fromOf(draft.place) }),
    ...((draft.source === "folder" || draft.source === "git") && { source: sourceOf(draft) }),
    budgets: budgetsOf(draft),
    settings: {
      ...(draft.runtime !== "" && { runtime: draft.runtime }),
      ...(draft.network !== "none" && { network: { mode: draft.network, rules: linesOf(draft.hosts).map((host) => ({ host })) } }),
      secretNames: [...draft.secrets],
    },
    attended: true,
    detached: true,
  };
  const problems = { ...numberProblems(draft), ...placeProblems(draft) };
  if (Object.keys(problems).length > 0) return { request: null, problems };
  const checked = StartRun.safeParse(request);
  if (checked.success) return { request, problems: null };
  return { request: null, problems: problemsOf(checked.error.issues) };
}

/** Returns the draft that would start the run again unchanged. */
export function draftOf(
  created: Pick<RunCreatedData, "task" | "model" | "name" | "labels" | "budgets" | "agent">,
  source: WorkspaceSource | null,
): Draft {
  const { costUsd, steps, timeMs } = created.budgets;
  return {
    ...emptyDraft,
    task: created.task,
    agent: created.agent.name,
    model: created.model,
    labels: Object.entries(created.labels ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join("\n"),
    costUsd: costUsd === undefined ? "" : String(costUsd),
    steps: steps === undefined ? "" : String(steps),
    minutes: timeMs === undefined ? "" : String(timeMs / 60_000),
    ...placeOf(source),
  };
}
type RunCreatedData = Parameters<(typeof RunCreated)["make"]>[0];

function placeOf(source: WorkspaceSource | null): Partial<Draft> {
  if (source?.kind === "folder") return { source: "folder", place: source.path };
  if (source?.kind === "git") return { source: "git", place: source.url, ref: source.ref ?? source.branch ?? "" };
  return {};
}

function sourceOf({ source, place, ref }: Draft): NonNullable<StartRunInput["source"]> {
  if (source === "folder") return { kind: "folder", path: place.trim() };
  return { kind: "git", url: place.trim(), ...(ref.trim() !== "" && { ref: ref.trim() }) };
}

function fromOf(place: string): NonNullable<StartRunInput["from"]> {
  const [session = "", step] = place.trim().split(/@(?=\d+$)/);
  return { session, ...(step !== undefined && { at: Number(step) }) };
}

function budgetsOf({ costUsd, steps, minutes }: Draft): NonNullable<StartRunInput["budgets"]> {
  return {
    ...(costUsd.trim() !== "" && { costUsd: Number(costUsd) }),
    ...(steps.trim() !== "" && { steps: Number(steps) }),
    ...(minutes.trim() !== "" && { timeMs: Math.round(Number(minutes) * 60_000) }),
  };
}

function numberProblems(draft: Draft): DraftProblems {
  const problems: DraftProblems = {};
  for (const field of ["costUsd", "steps", "minutes"] as const) {
    const value = Number(draft[field]);
    if (draft[field].trim() !== "" && !(value > 0)) problems[field] = "Enter a number above 0.";
  }
  return problems;
}

function placeProblems({ source, place }: Draft): DraftProblems {
  if (source === "empty" || place.trim() !== "") return {};
  return { place: { folder: "Enter a folder on the station's machine.", git: "Enter a repository URL.", run: "Enter a run." }[source] };
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

const linesOf = (text: string): string[] =>
  text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Form fields by the first part of a path in the request; `settings` has one more part. */
const fieldOf: Readonly<Record<string, keyof Draft>> = {
  task: "task",
  agent: "agent",
  model: "model",
  name: "name",
  labels: "labels",
  source: "place",
  from: "place",
  budgets: "costUsd",
  "settings.network": "hosts",
  "settings.runtime": "runtime",
  "settings.secretNames": "secrets",
};

function problemsOf(issues: readonly { path: readonly PropertyKey[]; message: string }[]): DraftProblems {
  const problems: DraftProblems = {};
  for (const { path, message } of issues) {
    const field = fieldOf[String(path[0])] ?? fieldOf[path.slice(0, 2).join(".")] ?? "task";
    problems[field] ??= `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`;
  }
  return problems;
}
