import { useQuery } from "@tanstack/react-query";
import { HarnessSettings } from "../../../../src/contract/harness/harness.ts";
import type { ModelList } from "../../../../src/contract/machine/machine-verbs.ts";
import { useKnownPlaces } from "../../data/known-places.ts";
import { useStation } from "../../data/station.tsx";
import { ChoiceField, Field, LongField } from "../../parts/field.tsx";
import type { Draft, DraftProblems } from "./draft.ts";
import styles from "./start.module.css";

interface Fields {
  draft: Draft;
  problems: DraftProblems;
  onChange(change: Partial<Draft>): void;
}

export function StartFields({ draft, problems, onChange }: Fields) {
  const station = useStation();
  const agents = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => station.agents.list({ signal }) });
  const doctor = useQuery({ queryKey: ["doctor"], queryFn: ({ signal }) => station.machine.doctor({}, { signal }), staleTime: 300_000 });
  const names = (agents.data ?? []).filter(({ fault, hidden }) => fault === null && !hidden).map(({ name }) => name);
  const allowed = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => station.machine.models({}, { signal }), staleTime: 300_000 });
  const known = useKnownPlaces();
  const models = modelsOf(allowed.data, known.models);
  return (
    <>
      <LongField
        label="Task"
        autoFocus
        rows={5}
        placeholder="What should be done? The agent sees exactly this."
        value={draft.task}
        problem={problems.task}
        onChange={(event) => onChange({ task: event.target.value })}
      />
      <div className={styles.row}>
        <ChoiceField
          label="Agent"
          value={draft.agent}
          problem={problems.agent}
          choices={[...new Set([draft.agent, ...names])].map((name) => ({ value: name, label: name }))}
          hint={agents.data?.find(({ name }) => name === draft.agent)?.description}
          onChoice={(agent) => onChange({ agent })}
        />
        <Field
          label="Model"
          offers={models}
          placeholder={allowed.data?.default ?? "anthropic/…, openai/…, scripted:demo"}
          value={draft.model}
          problem={problems.model}
          hint={
            hasKey(allowed.data)
              ? "Leave empty for the agent's own model, or the station's."
              : "No provider has a key here. scripted:demo needs none."
          }
          onChange={(event) => onChange({ model: event.target.value })}
        />
      </div>
      <Workspace {...{ draft, problems, onChange }} folders={known.folders} />
      <Walls
        {...{ draft, problems, onChange }}
        runtimes={(doctor.data?.runtimes ?? []).filter(({ usable }) => usable).map(({ name }) => name)}
      />
      <Bounds {...{ draft, problems, onChange }} />
    </>
  );
}

const hasKey = (models: ModelList | undefined) =>
  models === undefined || models.default !== null || models.providers.some((each) => each.hasKey);

/** Lists the station's default first, then models of earlier runs, then those that the keys allow. */
function modelsOf(models: ModelList | undefined, used: readonly string[]): string[] {
  const allowed = (models?.providers ?? []).flatMap((each) => (each.hasKey ? each.models : []));
  return [...new Set([models?.default ?? null, ...used, ...allowed, "scripted:demo"])].filter((name) => name !== null);
}

const placeFields = {
  folder: { label: "Folder", placeholder: "/home/me/project" },
  git: { label: "Repository", placeholder: "https://…" },
  run: { label: "Run, or RUN@STEP", placeholder: "run_…@3" },
} as const;

function Workspace({ draft, problems, onChange, folders }: Fields & { folders: readonly string[] }) {
  return (
    <div className={styles.row}>
      <ChoiceField
        label="Works on"
        value={draft.source}
        choices={[
          { value: "empty", label: "an empty workspace" },
          { value: "folder", label: "a folder on the station's machine" },
          { value: "git", label: "a git repository" },
          { value: "run", label: "the files of another run" },
        ]}
        hint="The run works on a copy. You apply, branch or discard its changes."
        onChoice={(source) => onChange({ source: source as Draft["source"] })}
      />
      {draft.source !== "empty" && (
        <Field
          label={placeFields[draft.source].label}
          placeholder={placeFields[draft.source].placeholder}
          offers={draft.source === "folder" ? folders : []}
          value={draft.place}
          problem={problems.place}
          onChange={(event) => onChange({ place: event.target.value })}
        />
      )}
      {draft.source === "git" && (
        <Field
          label="Branch or commit"
          value={draft.ref}
          placeholder="the default"
          onChange={(event) => onChange({ ref: event.target.value })}
        />
      )}
    </div>
  );
}

function Walls({ draft, problems, onChange, runtimes }: Fields & { runtimes: readonly string[] }) {
  return (
    <>
      <div className={styles.row}>
        <ChoiceField
          label="Network"
          value={draft.network}
          choices={[
            { value: "none", label: "none" },
            { value: "allow", label: "the hosts below" },
            { value: "open", label: "every public address" },
          ]}
          hint="Denied connections appear in the run, where you can allow them."
          onChoice={(network) => onChange({ network: network as Draft["network"] })}
        />
        <ChoiceField
          label="Runtime"
          value={draft.runtime}
          problem={problems.runtime}
          choices={[{ value: "", label: "station default" }, ...runtimes.map((name) => ({ value: name, label: name }))]}
          onChoice={(runtime) => onChange({ runtime })}
        />
      </div>
      {draft.network === "allow" && (
        <LongField
          label="Hosts"
          rows={3}
          placeholder={"api.example.com\n*.example.org"}
          value={draft.hosts}
          problem={problems.hosts}
          hint="One per line."
          onChange={(event) => onChange({ hosts: event.target.value })}
        />
      )}
      <Secrets chosen={draft.secrets} problem={problems.secrets} onChange={(secrets) => onChange({ secrets })} />
    </>
  );
}

function Secrets({
  chosen,
  problem,
  onChange,
}: {
  chosen: readonly string[];
  problem: string | undefined;
  onChange(names: string[]): void;
}) {
  const station = useStation();
  const { data } = useQuery({ queryKey: ["secrets"], queryFn: ({ signal }) => station.secrets.list({ signal }) });
  if (data === undefined || data.length === 0) return null;
  return (
    <fieldset className={styles.secrets}>
      <legend>Secrets</legend>
      {data.map(({ name }) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={(event) => onChange(event.target.checked ? [...chosen, name] : chosen.filter((each) => each !== name))}
          />
          <code>{name}</code>
        </label>
      ))}
      <p className={styles.hint}>{problem ?? "The sandbox sees only a placeholder. The value goes only to the secret's own hosts."}</p>
    </fieldset>
  );
}

function Bounds({ draft, problems, onChange }: Fields) {
  const { maxSteps, timeoutMs } = useLimits(draft.agent);
  const field = (label: string, name: "costUsd" | "steps" | "minutes", usual: string) => (
    <Field
      label={label}
      inputMode="decimal"
      placeholder={usual}
      value={draft[name]}
      problem={problems[name]}
      onChange={(event) => onChange({ [name]: event.target.value })}
    />
  );
  return (
    <details className={styles.more}>
      <summary>Limits, name and labels</summary>
      <div className={styles.row}>
        {field("Cost, USD", "costUsd", "no limit")}
        {field("Steps", "steps", `${maxSteps} by default`)}
        {field("Minutes", "minutes", `${Math.round(timeoutMs / 6_000) / 10} by default`)}
      </div>
      <div className={styles.row}>
        <Field
          label="Name"
          placeholder="such as fix-tests"
          value={draft.name}
          problem={problems.name}
          onChange={(event) => onChange({ name: event.target.value })}
        />
        <Field
          label="Labels"
          placeholder="team=web, urgent=yes"
          value={draft.labels}
          problem={problems.labels}
          onChange={(event) => onChange({ labels: event.target.value })}
        />
      </div>
    </details>
  );
}

/** Returns the limits that apply if the form sets none: the agent's own, or the usual ones. */
function useLimits(agent: string): Pick<HarnessSettings, "maxSteps" | "timeoutMs"> {
  const station = useStation();
  const { data } = useQuery({
    queryKey: ["agent", agent],
    queryFn: ({ signal }) => station.agents.show(agent, {}, { signal }),
    retry: false,
    staleTime: 60_000,
  });
  return data?.harness ?? usualLimits;
}

const usualLimits = HarnessSettings.parse({});
