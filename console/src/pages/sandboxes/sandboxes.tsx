import { useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import type { SandboxInfo } from "../../../../src/contract/sandbox.ts";
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
import { keys, useSandboxes } from "../../station/queries.ts";
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
  const [asked, setAsked] = useState<"new" | "remove" | null>(null);
  const queries = useQueryClient();
  const filter = filterOf(params);
  const sort = sortOf(params, usualSort);
  const all = data?.sandboxes;
  const columns = useMemo(() => columnsFor(all ?? []), [all]);
  const shown = narrowSandboxes(all ?? [], { filter, sort, nowMs: Date.now() });
  const selection = withoutGone(
    selected,
    shown.map(({ id }) => id),
  );
  usePageKeys((event) => {
    if (event.key !== "n") return;
    event.preventDefault();
    setAsked("new");
  });
  const isNarrowed = Object.values(filter).some((value) => value !== null && value !== "");
  const clear = () => change(Object.fromEntries(filterNames.map((name) => [name, null])));
  const lookAgain = () => void queries.invalidateQueries({ queryKey: keys.sandboxes });
  return (
    <Page
      title="Sandboxes"
      actions={
        <Button look="main" icon={<Plus />} onClick={() => setAsked("new")}>
          New sandbox
        </Button>
      }
    >
      <div className={styles.page}>
        {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
        {all === undefined && error === null && <Loading />}
        {data !== undefined && data.damaged.length > 0 && <DamagedSandboxes damaged={data.damaged} onRemoved={lookAgain} />}
        {all?.length === 0 && <NoneYet onNew={() => setAsked("new")} />}
        {all !== undefined && all.length > 0 && (
          <>
            <SandboxFilters
              all={all}
              filter={filter}
              onChange={change}
              search={searchOf(params)}
              onClear={isNarrowed ? clear : undefined}
            />
            {shown.length === 0 ? (
              <Empty title="None like that" action={<Button onClick={clear}>Show all {all.length}</Button>} />
            ) : (
              <List
                label="Sandboxes"
                items={shown}
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
                  setAsked("remove");
                  return true;
                }}
              />
            )}
          </>
        )}
        <BulkBar count={selection.chosen.size} onClear={() => setSelection(nothingSelected)}>
          <Button look="danger" icon={<Trash2 />} onClick={() => setAsked("remove")}>
            Remove
          </Button>
        </BulkBar>
      </div>
      {asked === "new" && <NewSandbox onClose={() => setAsked(null)} />}
      {asked === "remove" && (
        <RemoveSandboxes
          sandboxes={shown.filter(({ id }) => selection.chosen.has(id))}
          onClose={() => {
            setAsked(null);
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

/** What narrows and sorts the list, as it is kept by a name. */
function searchOf(params: URLSearchParams): string {
  const given = [...filterNames, "sort"].map((name) => [name, params.get(name) ?? ""] as [string, string]);
  return String(new URLSearchParams(given.filter(([, value]) => value !== "")));
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
        // A choice of one is none.
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
          const given = new URLSearchParams(next);
          onChange(Object.fromEntries([...filterNames, "sort"].map((name) => [name, given.get(name)])));
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
      A sandbox is a place of its own for programs that nobody vouches for, with a terminal, files and a network that you decide about. Each{" "}
      <Link href="/start">run of an agent</Link> gets one by itself; <code>caisson sandbox create</code> makes one in a terminal.
    </Empty>
  );
}
