import { useMemo } from "react";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { FilterChoice, Filters, SearchBox } from "../../parts/filters.tsx";
import { SavedFilters } from "../../parts/saved-filter-list.tsx";
import { type TimeBack, times } from "../../parts/times-back.ts";
import { visibleText } from "../../parts/visible-text.ts";
import { choicesIn, everyRun, type RunFilter, runStates, writeFilter } from "./run-filter.ts";
import styles from "./run-filters.module.css";

interface RunFiltersProps {
  runs: readonly RunView[];
  filter: RunFilter;
  onChange(filter: RunFilter): void;
  /** Called with the address of a saved filter. */
  onOpen(search: string): void;
}

/** The filters of the run list: search text, states and properties, and saved filters. */
export function RunFilters({ runs, filter, onChange, onOpen }: RunFiltersProps) {
  const choices = useMemo(() => choicesIn(runs), [runs]);
  const put = (changed: Partial<RunFilter>) => onChange({ ...filter, ...changed });
  const { sort, isAscending } = filter;
  const isNarrowed = writeFilter({ ...filter, sort: "updated", isAscending: false }) !== "";
  return (
    <Filters onClear={isNarrowed ? () => onChange({ ...everyRun, sort, isAscending }) : undefined}>
      <SearchBox label="Search task, name, id, label" value={filter.text} onValue={(text) => put({ text })} />
      <fieldset className={styles.states}>
        <legend className="visually-hidden">States</legend>
        {runStates.map((state) => {
          const isOn = filter.states.includes(state);
          const states = isOn ? filter.states.filter((each) => each !== state) : [...filter.states, state];
          return (
            <button key={state} type="button" className={styles.state} aria-pressed={isOn} onClick={() => put({ states })}>
              {state}
            </button>
          );
        })}
      </fieldset>
      <FilterChoice
        label="Agent"
        choices={toChoices(choices.agents)}
        value={filter.agent || null}
        onValue={(agent) => put({ agent: agent ?? "" })}
      />
      <FilterChoice
        label="Runtime"
        choices={toChoices(choices.runtimes)}
        value={filter.runtime || null}
        onValue={(runtime) => put({ runtime: runtime ?? "" })}
      />
      {(choices.labels.length > 0 || filter.label !== "") && (
        <FilterChoice
          label="Label"
          choices={toChoices(choices.labels)}
          value={filter.label || null}
          onValue={(label) => put({ label: label ?? "" })}
        />
      )}
      <FilterChoice
        label="Any time"
        choices={times}
        value={filter.time || null}
        onValue={(time) => put({ time: (time ?? "") as TimeBack | "" })}
      />
      <Button isOn={filter.withSubRuns} onClick={() => put({ withSubRuns: !filter.withSubRuns })}>
        Sub-runs
      </Button>
      <SavedFilters list="run" search={writeFilter(filter)} isNarrowed={isNarrowed} onOpen={onOpen} />
    </Filters>
  );
}

function toChoices(values: readonly string[]): { value: string; label: string }[] {
  return values.map((value) => ({ value, label: visibleText(value) }));
}
