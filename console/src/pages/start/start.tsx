import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { foundOrNull } from "../../../../src/contract/error/found-or-null.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { type Draft, type DraftProblems, draftOf, emptyDraft, requestOf } from "./draft.ts";
import styles from "./start.module.css";
import { StartFields } from "./start-fields.tsx";

/** A new run, from scratch or from an earlier one: `?from=run_…`, with its files after a step: `&at=3`. */
export default function Start() {
  const station = useStation();
  const [search] = useSearchParams();
  const from = search.get("from");
  const at = search.get("at");
  const before = useQuery({
    queryKey: ["draft", from, at],
    enabled: from !== null,
    queryFn: async ({ signal }) => {
      const { session } = await station.runs.get(from ?? "", { signal });
      const { value: created } = await station.runs
        .events(from ?? "", { signal })
        [Symbol.asyncIterator]()
        .next();
      const workspace = await foundOrNull(station.sessions.get(session, { signal }));
      const draft = created?.type === "run.created" ? draftOf(created.data, workspace?.source ?? null) : emptyDraft;
      return at === null ? draft : { ...draft, source: "run" as const, place: `${from}@${at}`, ref: "" };
    },
  });
  return (
    <Page title={from === null ? "New run" : at === null ? "Repeat with changes" : "New run from a step"}>
      {from !== null && before.isPending && <Loading />}
      {before.error !== null && <Problem error={before.error} />}
      {(from === null || before.data !== undefined) && (
        <StartForm first={before.data ?? { ...emptyDraft, task: search.get("task") ?? "" }} />
      )}
    </Page>
  );
}

function StartForm({ first }: { first: Draft }) {
  const station = useStation();
  const [, navigate] = useLocation();
  const [draft, setDraft] = useState(first);
  const [problems, setProblems] = useState<DraftProblems>({});
  const [error, setError] = useState<unknown>(null);
  const [isStarting, setStarting] = useState(false);
  const start = async () => {
    const { request, problems: found } = requestOf(draft);
    setProblems(found ?? {});
    if (request === null) return;
    setStarting(true);
    setError(null);
    try {
      const { run } = await station.runs.start(request);
      navigate(`/runs/${run}`);
    } catch (failure) {
      setError(failure);
      setStarting(false);
    }
  };
  return (
    <form
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) void start();
      }}
    >
      <StartFields draft={draft} problems={problems} onChange={(change) => setDraft((current) => ({ ...current, ...change }))} />
      {error !== null && <Problem error={error} />}
      <div className={styles.actions}>
        <Button look="main" type="submit" disabled={isStarting}>
          {isStarting ? "Starting…" : "Start the run"}
        </Button>
        <span className={styles.hint}>
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </span>
      </div>
    </form>
  );
}
