import { useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { keys, useSandboxes } from "../../data/queries.ts";
import { BulkBar } from "../../parts/bulk-bar.tsx";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { sortOf, sortParam, useFilterParams } from "../../parts/filter-params.ts";
import { FilterChoice, Filters, SearchBox } from "../../parts/filters.tsx";
import { List } from "../../parts/list.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { usePageKeys } from "../../parts/page-keys.ts";
import { Problem } from "../../parts/problem.tsx";
import { SavedFilters } from "../../parts/saved-filter-list.tsx";
import { nothingSelected, withoutGone } from "../../parts/selection.ts";
import { isTimeBack, times } from "../../parts/times-back.ts";
import { DamagedSandboxes } from "./damaged-sandboxes.tsx";
import { choicesOf, labelsOf, narrowSandboxes, type SandboxFilter, usualSort } from "./narrow-sandboxes.ts";
import { NewSandbox } from "./new-sandbox.tsx";
import { RemoveSandboxes } from "./remove-sandboxes.tsx";
import { columnsFor, PhoneRow } from "./sandbox-columns.tsx";
import styles from "./sandboxes.module.css";

const phoneRow = (sandbox: SandboxInfo) => <PhoneRow sandbox={sandbox} />;

export default function Sandboxes() {
  const { data, error, refetch } = useSandboxes();
  const [params, change] = useFilterParams();
  const [selected, setSelection] = useState(nothingSelected);
  const [dialog, setDialog] = useState<"new" | "remove" | null>(null);
  const queries = useQueryClient();
  const filter = filterOf(params);
  const sort = sortOf(params, usualSort);
  const all = data?.sandboxes;
  const columns = useMemo(() => columnsFor(all ?? []), [all]);
  const shownSandboxes = narrowSandboxes(all ?? [], { filter, sort, nowMs: Date.now() });
  const selection = withoutGone(
    selected,
    shownSandboxes.map(({ id }) => id),
  );
  usePageKeys((event) => {
    if (event.key !== "n") return;
    event.preventDefault();
    setDialog("new");
  });
  const isNarrowed = Object.values(filter).some((value) => value !== null && value !== "");
  const clear = () => change(Object.fromEntries(filterNames.map((name) => [name, null])));
  const lookAgain = () => void queries.invalidateQueries({ queryKey: keys.sandboxes });
  return (
    <Page
      title="Sandboxes"
      actions={
        <Button look="main" icon={<Plus />} onClick={() => setDialog("new")}>
          New sandbox
        </Button>
      }
    >
      <div className={styles.page}>
        {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
        {all === undefined && error === null && <Loading />}
        {data !== undefined && data.damaged.length > 0 && <DamagedSandboxes damaged={data.damaged} onRemoved={lookAgain} />}
        {all?.length === 0 && <NoneYet onNew={() => setDialog("new")} />}
        {all !== undefined && all.length > 0 && (
          <>
            <SandboxFilters
              all={all}
              filter={filter}
              onChange={change}
              search={searchOf(params)}
              onClear={isNarrowed ? clear : undefined}
            />
            {shownSandboxes.length === 0 ? (
              <Empty title="No matching sandboxes" action={<Button onClick={clear}>Show all {all.length}</Button>} />
            ) : (
              <List
                label="Sandboxes"
                items={shownSandboxes}
                idOf={({ id }) => id}
                hrefOf={({ id }) => `/sandboxes/${id}`}
                nameOf={({ id, name }) => name ?? id}
                columns={columns}
                phoneRow={phoneRow}
                selection={selection}
                onSelection={setSelection}
                sort={sort}
                onSort={(next) => change({ sort: sortParam(next) })}
                onKey={(key) => {
                  if (key !== "Delete" || selection.chosen.size === 0) return false;
                  setDialog("remove");
                  return true;
                }}
              />
            )}
          </>
        )}
        <BulkBar count={selection.chosen.size} onClear={() => setSelection(nothingSelected)}>
          <Button look="danger" icon={<Trash2 />} onClick={() => setDialog("remove")}>
            Remove
          </Button>
        </BulkBar>
      </div>
      {dialog === "new" && <NewSandbox onClose={() => setDialog(null)} />}
      {dialog === "remove" && (
        <RemoveSandboxes
          sandboxes={shownSandboxes.filter(({ id }) => selection.chosen.has(id))}
          onClose={() => {
            setDialog(null);
            lookAgain();
          }}
        />
      )}
    </Page>
  );
}

function filterOf(params: URLSearchParams): SandboxFilter {
  const of = (name: string) => params.get(name);
  const time = of("time");
  return {
    ...{ text: of("q") ?? "", state: of("state"), runtime: of("runtime"), label: of("label"), owner: of("owner") },
    time: isTimeBack(time) ? time : null,
  };
}

const filterNames = ["q", "state", "runtime", "label", "owner", "time"] as const;

/** Returns the filter and order of the list, in the form that is saved by name. */
function searchOf(params: URLSearchParams): string {
  const entries = [...filterNames, "sort"].map((name) => [name, params.get(name) ?? ""] as [string, string]);
  return String(new URLSearchParams(entries.filter(([, value]) => value !== "")));
}

function SandboxFilters({
  all,
  filter,
  search,
  onChange,
  onClear,
}: {
  all: readonly SandboxInfo[];
  filter: SandboxFilter;
  search: string;
  onChange(changes: Record<string, string | null>): void;
  onClear: (() => void) | undefined;
}) {
  const choices = useMemo(
    () => ({
      state: choicesOf(all.map(({ state }) => state)),
      runtime: choicesOf(all.map(({ runtime }) => runtime)),
      label: choicesOf(all.flatMap(labelsOf)),
      owner: choicesOf(all.map(({ owner }) => owner)),
    }),
    [all],
  );
  const names = { state: "State", runtime: "Runtime", label: "Label", owner: "Owner" } as const;
  return (
    <Filters onClear={onClear}>
      <SearchBox label="Search sandboxes" value={filter.text} onValue={(q) => onChange({ q })} />
      {(Object.keys(names) as (keyof typeof names)[])
        // Hides a filter with only one choice.
        .filter((name) => filter[name] !== null || choices[name].length > (name === "label" ? 0 : 1))
        .map((name) => (
          <FilterChoice
            key={name}
            label={names[name]}
            choices={choices[name]}
            value={filter[name]}
            onValue={(value) => onChange({ [name]: value })}
          />
        ))}
      <FilterChoice label="Any time" choices={times} value={filter.time} onValue={(time) => onChange({ time })} />
      <SavedFilters
        list="sandbox"
        search={search}
        isNarrowed={onClear !== undefined}
        onOpen={(next) => {
          const params = new URLSearchParams(next);
          onChange(Object.fromEntries([...filterNames, "sort"].map((name) => [name, params.get(name)])));
        }}
      />
    </Filters>
  );
}

function NoneYet({ onNew }: { onNew(): void }) {
  return (
    <Empty
      title="No sandboxes yet"
      action={
        <Button look="main" icon={<Plus />} onClick={onNew}>
          New sandbox
        </Button>
      }
    >
      A sandbox is an isolated place for untrusted programs, with a terminal, files and a network that you control. Each{" "}
      <Link href="/start">run of an agent</Link> gets its own; <code>caisson sandbox create</code> creates one from a terminal.
    </Empty>
  );
}
