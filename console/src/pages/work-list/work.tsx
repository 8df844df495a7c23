import { useMemo, useState } from "react";
import { kindNames, type WorkItem, type WorkKind, workKinds, workStates } from "../../data/work-item.ts";
import { useWork } from "../../data/work-queries.ts";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { sortOf, sortParam, useFilterParams } from "../../parts/filter-params.ts";
import { FilterChoice, Filters, SearchBox } from "../../parts/filters.tsx";
import { List } from "../../parts/list.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { nothingSelected, withoutGone } from "../../parts/selection.ts";
import { Tabs } from "../../parts/tabs.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { BulkWork } from "./bulk-work.tsx";
import { narrowWork, usualSort, type WorkFilter, workFilterOf } from "./narrow-work.ts";
import { NoWork } from "./no-work.tsx";
import styles from "./work.module.css";
import { PhoneRow, workColumns } from "./work-columns.tsx";

const phoneRow = (item: WorkItem) => <PhoneRow item={item} />;
const noItems: readonly WorkItem[] = [];

/** Lists all work that consists of several runs: workflows, specs, ships, merges and best-ofs. */
export default function Work() {
  const { data, error, refetch } = useWork();
  const [params, change] = useFilterParams();
  const [selected, setSelection] = useState(nothingSelected);
  const filter = workFilterOf(params);
  const sort = sortOf(params, usualSort);
  const all = data ?? noItems;
  const shownItems = narrowWork(all, { filter, sort });
  const ids = shownItems.map(({ id }) => id);
  const selection = withoutGone(selected, ids);
  const clear = () => change({ q: null, state: null, owner: null, parts: null });
  const ofKind = filter.kind === null ? all : all.filter(({ kind }) => kind === filter.kind);
  return (
    <Page title="Work">
      <div className={styles.page}>
        <KindTabs items={narrowWork(all, { filter: { ...filter, kind: null }, sort })} params={params} current={filter.kind} />
        {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
        {data === undefined && error === null && <Loading rows={10} />}
        {data !== undefined && ofKind.length === 0 && <NoWork kind={filter.kind} />}
        {ofKind.length > 0 && (
          <>
            <WorkFilters items={ofKind} filter={filter} onChange={change} onClear={clear} />
            {shownItems.length === 0 ? (
              <Empty title="No matching work" action={<Button onClick={clear}>Show all</Button>}>
                Clear part of the filter, or include parts of other work.
              </Empty>
            ) : (
              <List
                label="Work"
                items={shownItems}
                idOf={({ id }) => id}
                hrefOf={({ href }) => href}
                nameOf={({ id, name }) => name ?? id}
                columns={workColumns}
                phoneRow={phoneRow}
                selection={selection}
                onSelection={setSelection}
                sort={sort}
                onSort={(next) => change({ sort: sortParam(next) })}
              />
            )}
          </>
        )}
        <BulkWork chosen={shownItems.filter(({ id }) => selection.chosen.has(id))} onClear={() => setSelection(nothingSelected)} />
      </div>
    </Page>
  );
}

/** Tabs with the number of matches of each kind. */
function KindTabs({ items, params, current }: { items: readonly WorkItem[]; params: URLSearchParams; current: WorkKind | null }) {
  const hrefOf = (kind: WorkKind | null) => {
    const search = new URLSearchParams(params);
    if (kind === null) search.delete("kind");
    else search.set("kind", kind);
    return search.size === 0 ? "/work" : `/work?${search}`;
  };
  return (
    <Tabs
      label="Kinds of work"
      current={hrefOf(current)}
      tabs={[
        { href: hrefOf(null), label: "All", count: items.length },
        ...workKinds.map((kind) => ({
          href: hrefOf(kind),
          label: kindNames[kind].all,
          count: items.filter((item) => item.kind === kind).length,
        })),
      ]}
    />
  );
}

interface WorkFiltersProps {
  items: readonly WorkItem[];
  filter: WorkFilter;
  onChange(changes: Record<string, string | null>): void;
  onClear(): void;
}

function WorkFilters({ items, filter, onChange, onClear }: WorkFiltersProps) {
  const owners = useMemo(() => [...new Set(items.map(({ owner }) => owner))].sort(), [items]);
  const isNarrowed = filter.text !== "" || filter.state !== null || filter.owner !== null || filter.withParts;
  return (
    <Filters onClear={isNarrowed ? onClear : undefined}>
      <SearchBox label="Search title, name, id" value={filter.text} onValue={(q) => onChange({ q })} />
      <FilterChoice
        label="State"
        choices={workStates.map((state) => ({ value: state, label: state }))}
        value={filter.state}
        onValue={(state) => onChange({ state })}
      />
      {(owners.length > 1 || filter.owner !== null) && (
        <FilterChoice
          label="Owner"
          choices={owners.map((owner) => ({ value: owner, label: visibleText(owner) }))}
          value={filter.owner}
          onValue={(owner) => onChange({ owner })}
        />
      )}
      <Button isOn={filter.withParts} onClick={() => onChange({ parts: filter.withParts ? null : "1" })}>
        Parts
      </Button>
    </Filters>
  );
}
