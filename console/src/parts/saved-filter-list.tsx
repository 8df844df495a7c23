import { Bookmark, X } from "lucide-react";
import { useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Field } from "./field.tsx";
import styles from "./saved-filter-list.module.css";
import { type FilteredList, forgetFilter, saveFilter, useSavedFilters } from "./saved-filters.ts";
import { visibleText } from "./visible-text.ts";

interface SavedFiltersProps {
  list: FilteredList;
  /** The current filter, as in the page's address. */
  search: string;
  isNarrowed: boolean;
  onOpen(search: string): void;
}

/** Lists the saved filters, and offers to save the current one. */
export function SavedFilters({ list, search, isNarrowed, onOpen }: SavedFiltersProps) {
  const saved = useSavedFilters(list);
  const [isNaming, setNaming] = useState(false);
  return (
    <>
      {saved.map((each) => (
        <span key={each.name} className={styles.saved} data-on={each.search === search}>
          <button type="button" onClick={() => onOpen(each.search)}>
            {visibleText(each.name)}
          </button>
          <button type="button" aria-label={`Remove the filter ${visibleText(each.name)}`} onClick={() => forgetFilter(list, each.name)}>
            <X aria-hidden="true" />
          </button>
        </span>
      ))}
      {isNarrowed && !saved.some((each) => each.search === search) && (
        <Button look="plain" icon={<Bookmark />} onClick={() => setNaming(true)}>
          Save filter
        </Button>
      )}
      {isNaming && <NameFilter list={list} search={search} onClose={() => setNaming(false)} />}
    </>
  );
}

function NameFilter({ list, search, onClose }: Pick<SavedFiltersProps, "list" | "search"> & { onClose(): void }) {
  const [name, setName] = useState("");
  const save = () => {
    saveFilter(list, { name, search });
    onClose();
  };
  return (
    <Dialog
      title="Save this filter"
      onClose={onClose}
      actions={
        <Button look="main" onClick={save} disabled={name.trim() === ""}>
          Save
        </Button>
      }
    >
      <Field
        label="Name"
        value={name}
        maxLength={40}
        hint="Stored in this browser."
        autoFocus
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && save()}
      />
    </Dialog>
  );
}
