import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useLocation, useSearch } from "wouter";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { useRuns } from "../../data/queries.ts";
import { plural } from "../../parts/amounts.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { List } from "../../parts/list.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { nothingSelected, withoutGone } from "../../parts/selection.ts";
import { BulkActions } from "./bulk-actions.tsx";
import { PhoneRow, runColumns } from "./run-columns.tsx";
import { everyRun, narrowRuns, prepareSearch, type RunColumn, type RunFilter, readFilter, sortRuns, writeFilter } from "./run-filter.ts";
import { RunFilters } from "./run-filters.tsx";
import styles from "./runs.module.css";

const noRuns: readonly RunView[] = [];
const phoneRow = (run: RunView) => <PhoneRow run={run} />;

export default function Runs() {
  const { data, error, refetch } = useRuns();
  const runs = data?.runs ?? noRuns;
  const [, go] = useLocation();
  const filter = readFilter(useSearch());
  const open = (search: string) => go(`/runs${search === "" ? "" : `?${search}`}`, { replace: true });
  const setFilter = (next: RunFilter) => open(writeFilter(next));
  // The search box shows typing immediately; the rows follow when they are ready.
  const written = useDeferredValue(writeFilter(filter));
  const { sort, isAscending } = filter;
  const ordered = useMemo(() => sortRuns(runs, { sort, isAscending }), [runs, sort, isAscending]);
  const shownRuns = useMemo(() => narrowRuns(ordered, readFilter(written), Date.now()), [ordered, written]);
  useEffect(() => prepareSearch(runs), [runs]);
  const [selected, setSelection] = useState(nothingSelected);
  const ids = useMemo(() => shownRuns.map(({ run }) => run), [shownRuns]);
  const selection = useMemo(() => withoutGone(selected, ids), [selected, ids]);
  const chosen = useMemo(() => shownRuns.filter(({ run }) => selection.chosen.has(run)), [shownRuns, selection]);
  const count = shownRuns.length === runs.length ? plural(runs.length, "run") : `${shownRuns.length} of ${runs.length}`;
  return (
    <Page title="Runs" actions={<span className={styles.count}>{count}</span>}>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading rows={12} />}
      {data !== undefined && runs.length === 0 && <NoRuns />}
      {runs.length > 0 && (
        <div className={styles.body}>
          <RunFilters runs={runs} filter={filter} onChange={setFilter} onOpen={open} />
          {shownRuns.length === 0 ? (
            <Empty title="No matching runs" action={<Button onClick={() => setFilter(everyRun)}>Show all runs</Button>}>
              Clear part of the filter, or include sub-runs.
            </Empty>
          ) : (
            <List
              label="Runs"
              items={shownRuns}
              idOf={({ run }) => run}
              hrefOf={({ run }) => `/runs/${run}`}
              nameOf={({ run, name }) => name ?? run}
              columns={runColumns}
              phoneRow={phoneRow}
              selection={selection}
              onSelection={setSelection}
              sort={{ by: filter.sort, isDown: !filter.isAscending }}
              onSort={({ by, isDown }) => setFilter({ ...filter, sort: by as RunColumn, isAscending: !isDown })}
            />
          )}
          <BulkActions chosen={chosen} onClear={() => setSelection(nothingSelected)} />
        </div>
      )}
    </Page>
  );
}

function NoRuns() {
  return (
    <Empty
      title="No runs yet"
      action={
        <ButtonLink href="/start" look="main">
          Start a run
        </ButtonLink>
      }
    >
      A run is an agent working on a task in its own sandbox. Start one here, or in a terminal with <code>caisson run "fix the tests"</code>
      .
    </Empty>
  );
}
